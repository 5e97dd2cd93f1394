"""What `keras_layouts` says of Keras and does not show: what is refused, silent, late or right."""

import ast
import inspect
import re

import numpy as np
import pytest

import course_lib
from course_lib.devices.dtensor import no_combining, to_numpy
from course_lib.exercises import limit
from tests.course import COURSE, from_lesson

tf = course_lib.start_tensorflow()
import tf_keras  # noqa: E402
from tensorflow.experimental import dtensor  # noqa: E402

checks = from_lesson("keras_layouts", "checks")

CELLS = [cell for cell in COURSE.lesson("keras_layouts").cells if cell.kind == "code"]
DEFINED = (ast.FunctionDef, ast.ClassDef)
FOUR = ("gamma", "beta", "moving_mean", "moving_variance")


@pytest.fixture(scope="module")
def lesson():
    """Returns what the lesson's cells define, on rows that take no time to load."""
    names = {"tf": tf, "np": np, "tf_keras": tf_keras, "dtensor": dtensor, "WHOLE": dtensor.UNSHARDED}
    names["mesh"] = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
    random = np.random.default_rng(1)
    names["train_x"] = (random.normal(size=(640, 1200)) / 35).astype("float32")
    names["train_y"] = (names["train_x"][:, :100].sum(axis=1) > 0).astype("int64")
    wanted = ("COLUMNS", "UNITS", "ROWS", "cross_entropy", "layout_map")
    for cell in CELLS:
        tree = ast.parse(cell.source)
        tree.body = [node for node in tree.body if isinstance(node, DEFINED) or sets(node, wanted)]
        exec(compile(tree, cell.cell_id, "exec"), names)
    return names


def sets(node, wanted):
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(
        isinstance(name, ast.Name) and name.id in wanted for each in targets for name in ast.walk(each)
    )


def test_a_function_that_is_compiled_again_has_to_be_so_uncombined_again(lesson):
    mesh, random = lesson["mesh"], np.random.default_rng(1)
    sizes = (8, 16, 16)
    rows = [
        (random.normal(size=(size, 1200)).astype("float32"), random.integers(0, 2, size)) for size in sizes
    ]

    def losses(model, optimizer, pack, uncombined):
        step = lesson["in_one_function"](model, optimizer)
        with no_combining():
            found = [float(step(*map(pack, each))) for each in rows[:uncombined]]
        return found + [float(step(*map(pack, each))) for each in rows[uncombined:]]

    def split(array):
        return lesson["distribute"](array, dtensor.Layout.batch_sharded(mesh, "batch", array.ndim))

    sgd = tf_keras.optimizers.SGD
    right = losses(lesson["mlp"](), sgd(0.1), tf.constant, 3)
    always = losses(lesson["split_mlp"](), sgd(0.1, mesh=mesh), split, 2)
    once = losses(lesson["split_mlp"](), sgd(0.1, mesh=mesh), split, 1)
    np.testing.assert_allclose(always, right, atol=1e-3)
    assert abs(once[2] - right[2]) > 1e-2


def test_what_is_quoted_of_sgd_stands_in_its_source(lesson):
    source = inspect.getsource(tf_keras.optimizers.SGD.update_step)
    text = next(
        cell.source for cell in COURSE.lesson("keras_layouts").cells if cell.cell_id == "updates-text"
    )
    quoted = re.findall(r"^\d\. `(.+)`$", text, re.M)
    assert len(quoted) == 2
    first = source.index(quoted[0])
    assert source.index(quoted[1], first) > first


def test_which_layers_take_layouts(lesson):
    layers, few = tf_keras.layers, {"filters": 4, "kernel_size": 3}
    layers.Dense(4, kernel_layout=lesson["COLUMNS"])
    layers.Embedding(8, 4, embeddings_layout=lesson["COLUMNS"])
    layers.LayerNormalization(gamma_layout=lesson["UNITS"])
    for convolution in (layers.Conv1D, layers.Conv2D):
        convolution(**few, kernel_layout=lesson["COLUMNS"])
    for convolution in (layers.DepthwiseConv2D, layers.SeparableConv2D):
        with pytest.raises(TypeError, match="kernel_layout"):
            convolution(3, 3, kernel_layout=lesson["COLUMNS"])


class WithNormalisation(tf_keras.Model):
    """A class of one's own whose layers take their layouts, or none."""

    def __init__(self, lesson=None):
        super().__init__()
        units = {"kernel_layout": lesson["COLUMNS"], "bias_layout": lesson["UNITS"]} if lesson else {}
        four = {f"{name}_layout": lesson["UNITS"] for name in FOUR} if lesson else {}
        self.hidden = tf_keras.layers.Dense(48, **units)
        self.normal = tf_keras.layers.BatchNormalization(**four)

    def call(self, x, training=False):
        return self.normal(self.hidden(x), training=training)


def test_a_class_with_a_normalisation_fails_under_a_map_and_is_right_with_arguments(lesson):
    x, _y = lesson["batch"](0, lesson["mesh"])
    with lesson["layout_map"].scope():
        mapped = WithNormalisation()
    with pytest.raises(ValueError, match="expected ndim=3"):
        mapped(x)
    models = [WithNormalisation(lesson), WithNormalisation()]
    for model in models:
        tf_keras.utils.set_random_seed(1)
        model.build((None, 1200))
    np.testing.assert_allclose(
        to_numpy(tf.function(models[0])(x)), models[1](lesson["train_x"][:64]), atol=1e-5
    )


def tape_outside(model, optimizer):
    @tf.function
    def loss_of(inputs, labels):
        logits = model(inputs, training=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(inputs, labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def test_who_takes_the_gradient_outside_is_told_so_before_tensorflow_refuses(monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 3.0)  # the refusal takes half a minute
    assert "`@tf.function` over a function that has the tape" in checks.step(tape_outside)
