"""Every plan of the lesson's model trains as one device does, with the collectives that are predicted."""

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
from tests.code_choices import MODEL_PARALLEL, SPATIAL
from tests.course import from_lesson, program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")
step_exchanges = from_lesson("splitting_the_model.step_communication", "step_exchanges")

LESSONS = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
SIZES = {"batch": 48, "features": 72, "hidden": 120, "classes": 168}  # all unlike, and divided by 2, 4, 8


@pytest.fixture(scope="module")
def lesson():
    return program("splitting_the_model")


def mesh_of(sizes):
    return MeshSpec((f"dim_{at}", int(size)) for at, size in enumerate(sizes.split("x")))


def all_plans(mesh):
    choices = itertools.product([UNSHARDED, *mesh.names], repeat=3)
    return [Plan("any", mesh, dict(zip(SIZES, choice, strict=False))) for choice in choices]


def is_legal(lesson, plan):
    try:
        plan.shardings(lesson.AXES, SIZES)
    except CourseError:
        return False
    return True


def step(lesson, plan, sizes):
    """Returns the model, its batch and the learning rate: what a step is called with."""
    draw = np.random.default_rng(0)
    values = {
        name: draw.normal(0, 0.1, [sizes[axis] for axis in axes]).astype("float32")
        for name, axes in lesson.AXES.items()
    }
    rows, _labels = values.pop("x"), values.pop("y")
    labels = draw.integers(0, sizes["classes"], sizes["batch"])
    layouts = dict.fromkeys(lesson.AXES)
    if plan is not None:
        mesh = create_mesh(plan.mesh)
        layouts = {name: to_layout(plan.layout(axes), mesh) for name, axes in lesson.AXES.items()}
    batch = lesson.place(rows, layouts["x"]), lesson.place(labels, layouts["y"])
    return lesson.MLP(values, layouts), *batch, 1e-2


def told_and_seen(lesson, plan, sizes):
    told = [str(each.as_run("CPU")) for _tensor, each in step_exchanges(plan, lesson.AXES, sizes)]
    seen = graphs.collectives(lesson.train_step, *step(lesson, plan, sizes), mesh=plan.mesh)
    return told, list(map(str, seen))


@pytest.mark.parametrize("plan", [data_parallel(8), MODEL_PARALLEL, SPATIAL], ids=lambda plan: plan.name)
def test_the_three_schemes_run_the_collectives_that_are_predicted(lesson, plan):
    told, seen = told_and_seen(lesson, plan, LESSONS)
    assert Counter(told) == Counter(seen)


@pytest.mark.parametrize("mesh", ["8", "4x2", "2x2x2", "3x2"])
def test_a_plan_is_refused_exactly_where_there_is_no_layout(lesson, mesh):
    real = create_mesh(mesh_of(mesh))
    for plan in all_plans(mesh_of(mesh)):
        try:
            for axes in lesson.AXES.values():
                dtensor.Layout([plan.splits.get(axis, UNSHARDED) for axis in axes], real)
        except ValueError:
            assert not is_legal(lesson, plan)
        else:
            assert is_legal(lesson, plan)


# Of the sample on 4x2 one plan splits batch and hidden units over one mesh dimension.
@pytest.mark.parametrize(
    ("mesh", "count"),
    [
        ("4x2", 3),
        *(
            pytest.param(*every, marks=pytest.mark.drill_all)
            for every in (("8", 5), ("4x2", 17), ("2x2x2", 43))
        ),
    ],
)
def test_a_plan_trains_as_one_device_does_with_the_collectives_that_are_predicted(lesson, mesh, count):
    plans = [plan for plan in all_plans(mesh_of(mesh)) if is_legal(lesson, plan)]
    chosen = random.Random(1).sample(plans, count) if count < len(plans) else plans
    assert len(chosen) == count
    one, *batch = step(lesson, None, SIZES)
    expected = lesson.train_step(one, *batch)
    for plan in chosen:
        told, seen = told_and_seen(lesson, plan, SIZES)
        assert Counter(told) == Counter(seen), plan
        model, *batch = step(lesson, plan, SIZES)
        found = lesson.train_step(model, *batch)
        assert np.abs(np.subtract(found, expected)).max() < 1e-5, plan
        for weight, theirs in zip(model.trainable_variables, one.trainable_variables, strict=True):
            assert np.abs(to_numpy(weight) - theirs.numpy()).max() < 1e-5, plan
