"""Under any plan a step of the classifier runs the predicted collectives, and is that of one device."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

import course_lib
from course_lib import CourseError, MeshSpec
from course_lib.devices import graphs
from course_lib.devices.dtensor import create_mesh, to_layout, to_numpy
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Plan, data_parallel
from course_lib.specs.step import Phase
from lessons.layouts.classifier_step import TENSORS, classifier_step
from tests.code_choices import MODEL_PARALLEL, SPATIAL
from tests.course import program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")

COURSES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
SIZES = {
    "batch": 48,
    "features": 72,
    "hidden": 120,
    "classes": 168,
}  # all unlike, and divided by 2, 3, 4, 6, 8
AXES = {**TENSORS, "y": ("batch",)}
MESHES = [[8], [4, 2], [2, 4], [2, 2, 2], [3, 2], [2, 3], [6], [2, 2], [4], [3], [1, 4], [2, 1, 3]]


class MLP(tf.Module):
    def __init__(self, values, layouts, normalised):
        super().__init__()
        self.normalised = normalised
        place = program("any_mesh").place
        for name, value in values.items():
            kind = tf.Variable if layouts[name] is None else dtensor.DVariable
            setattr(self, name, kind(place(value, layouts[name])))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        if self.normalised:
            mean, variance = tf.nn.moments(hidden, axes=[0])
            hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return hidden @ self.W2 + self.b2


def forward(model, x, y):
    logits = model(x)
    hits = tf.reduce_sum(tf.cast(tf.argmax(logits, axis=1) == y, tf.float32))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)), hits


def train_step(model, x, y):
    with tf.GradientTape() as tape:
        loss, hits = forward(model, x, y)
    weights = model.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.1 * gradient)
    return loss, hits


def model_and_batch(plan, sizes, normalised):
    """Returns what a step is called with: on one device where there is no plan."""
    draw = np.random.default_rng(0)
    values = {
        name: draw.normal(0, 0.1, [sizes[axis] for axis in axes]).astype("float32")
        for name, axes in TENSORS.items()
    }
    rows, labels = values.pop("x"), draw.integers(0, sizes["classes"], sizes["batch"])
    layouts = dict.fromkeys(AXES)
    if plan is not None:
        mesh = create_mesh(plan.mesh)
        layouts = {name: to_layout(plan.layout(axes), mesh) for name, axes in AXES.items()}
    place = program("any_mesh").place
    return MLP(values, layouts, normalised), place(rows, layouts["x"]), place(labels, layouts["y"])


def drawn(seed, count):
    """Yields plans on meshes of 3 to 8 devices, both drawn at random: each legal one may come."""
    draw = random.Random(seed)
    while count:
        mesh = MeshSpec((f"dim_{at}", size) for at, size in enumerate(draw.choice(MESHES)))
        plan = Plan("any", mesh, {axis: draw.choice([UNSHARDED, *mesh.names]) for axis in [*SIZES][:3]})
        if is_legal(plan):
            count -= 1
            yield plan


def is_legal(plan):
    try:
        plan.shardings(AXES, SIZES)
    except CourseError:
        return False
    return True


def told(plan, sizes, normalised, *phases):
    events = classifier_step(plan, sizes, normalized=normalised)
    return Counter(
        str(each.collective.as_run()) for each in events if each.collective and each.phase in phases
    )


def seen(function, plan, arguments):
    return Counter(map(str, graphs.collectives(function, *arguments, mesh=plan.mesh)))


def require_predicted(plan, sizes, normalised):
    """Holds what ran in a step, and in its forward pass alone, against the prediction."""
    arguments = model_and_batch(plan, sizes, normalised)
    assert seen(train_step, plan, arguments) == told(plan, sizes, normalised, *Phase), plan
    assert seen(forward, plan, arguments) == told(plan, sizes, normalised, Phase.FORWARD), plan


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("plan", [data_parallel(8), MODEL_PARALLEL, SPATIAL], ids=lambda plan: plan.name)
def test_the_three_schemes_run_the_collectives_that_are_predicted(plan, normalised):
    require_predicted(plan, COURSES, normalised)


@pytest.mark.parametrize("mesh", [[8], [4, 2], [2, 2, 2], [3, 2]])
def test_a_plan_is_refused_exactly_where_there_is_no_layout(mesh):
    spec = MeshSpec((f"dim_{at}", size) for at, size in enumerate(mesh))
    real = create_mesh(spec)
    for choice in itertools.product([UNSHARDED, *spec.names], repeat=3):
        plan = Plan("any", spec, dict(zip(SIZES, choice, strict=False)))
        try:
            for axes in AXES.values():
                dtensor.Layout([plan.splits.get(axis, UNSHARDED) for axis in axes], real)
        except ValueError:
            assert not is_legal(plan)
        else:
            assert is_legal(plan)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("seed", "count"), [(1, 4), pytest.param(2, 40, marks=pytest.mark.drill_all)])
def test_a_plan_drawn_at_random_trains_as_one_device_with_the_predicted_collectives(seed, count, normalised):
    one, *batch = model_and_batch(None, SIZES, normalised)
    expected = tf.function(train_step)(one, *batch)
    for plan in drawn(seed, count):
        require_predicted(plan, SIZES, normalised)
        model, *batch = model_and_batch(plan, SIZES, normalised)
        found = tf.function(train_step)(model, *batch)
        assert np.abs(np.subtract(found, expected)).max() < 1e-5, plan
        for weight, theirs in zip(model.trainable_variables, one.trainable_variables, strict=True):
            assert np.abs(to_numpy(weight) - theirs.numpy()).max() < 1e-5, plan
