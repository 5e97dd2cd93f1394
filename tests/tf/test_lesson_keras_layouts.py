"""What `keras_layouts` says of Keras and does not show: what is refused, silent, late or right."""

import ast
import inspect
import re

import numpy as np
import pytest

import course_lib
from course_lib import shard, to_numpy
from course_lib.devices.dtensor import no_combining
from course_lib.exercises import limit
from tests.course import COURSE, from_lesson, program

tf = course_lib.start_tensorflow()
import keras  # noqa: E402
import tf_keras  # noqa: E402
from tensorflow.experimental import dtensor  # noqa: E402

checks = from_lesson("keras_layouts", "checks")

CELLS = {cell.cell_id: cell.source for cell in COURSE.lesson("keras_layouts").cells}
FOUR = ("gamma", "beta", "moving_mean", "moving_variance")


@pytest.fixture(scope="module")
def lesson():
    """Returns what the lesson's cells define, on rows that take no time to load."""
    random = np.random.default_rng(1)
    names = {"np": np, "tf": tf, "dtensor": dtensor, "shard": shard, "WHOLE": dtensor.UNSHARDED}
    names["mesh"] = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
    names["train_x"] = (random.normal(size=(640, 1200)) / 35).astype("float32")
    names["train_y"] = (names["train_x"][:, :100].sum(axis=1) > 0).astype("int64")
    (values,) = (node for node in ast.parse(CELLS["data"]).body if sets(node, "values"))
    names["W1"], names["W2"] = (random.normal(0, 0.1, shape) for shape in ((1200, 48), (48, 2)))
    exec(ast.unparse(values), names)
    names["rows_of_x"] = dtensor.Layout(["batch", dtensor.UNSHARDED], names["mesh"])
    names["rows_of_y"] = dtensor.Layout(["batch"], names["mesh"])
    for cell in ("mlp", "layout-map", "step", "one-function", "two-functions", "losses"):
        exec(CELLS[cell], names)
    return names


def sets(node, name):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name


def losses(lesson, way, model, optimizer, count=4, *, on_mesh=True):
    rows = slice(0, 64 * count)
    step = lesson[way](model, optimizer)
    return lesson["losses_of"](step, lesson["train_x"][rows], lesson["train_y"][rows], on_mesh)


@pytest.fixture(scope="module")
def on_one(lesson):
    adam = tf_keras.optimizers.Adam(0.01)
    return losses(lesson, "two_functions", lesson["mlp"](tf_keras), adam, on_mesh=False)


def test_in_one_function_the_first_update_comes_late_and_one_variable_is_spared(lesson):
    model = lesson["split_mlp"]()
    adam = tf_keras.optimizers.Adam(0.01, mesh=lesson["mesh"])
    losses(lesson, "one_function", model, adam, 1)
    moved = [
        np.abs(to_numpy(weight) - value).max()
        for weight, value in zip(model.weights, lesson["values"].values(), strict=True)
    ]
    assert moved[0] == moved[1] == moved[3] == 0
    assert moved[2] > 1e-3


def test_nadam_is_wrong_in_two_functions_too(lesson):
    right = tf_keras.optimizers.Nadam(0.01)
    right = losses(lesson, "one_function", lesson["mlp"](tf_keras), right, on_mesh=False)
    nadam = tf_keras.optimizers.Nadam(0.01, mesh=lesson["mesh"])
    found = losses(lesson, "two_functions", lesson["split_mlp"](), nadam)
    assert abs(found - right).max() > 1e-4


def test_a_split_model_is_saved_by_a_checkpoint_and_brought_together_for_an_ordinary_one(lesson, tmp_path):
    model, again, whole = lesson["split_mlp"](), lesson["split_mlp"](), lesson["mlp"](tf_keras)
    adam = tf_keras.optimizers.Adam(0.01, mesh=lesson["mesh"])
    losses(lesson, "two_functions", model, adam, 1)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "model"))
    tf.train.Checkpoint(model=again).read(path)
    with pytest.raises(tf.errors.UnimplementedError):
        model.get_weights()
    with pytest.raises(tf.errors.UnimplementedError):
        model.save(tmp_path / "model.keras")
    tf.train.Checkpoint(model=whole).read(path)
    for one, other, third in zip(model.weights, again.weights, whole.weights, strict=True):
        assert other.layout == one.layout
        np.testing.assert_array_equal(to_numpy(other), to_numpy(one))
        np.testing.assert_array_equal(third, to_numpy(one))


def test_without_a_mesh_one_function_is_wrong_and_leaving_all_reduces_apart_is_no_cure(lesson, on_one):
    adam = tf_keras.optimizers.Adam(0.01)
    with no_combining():
        found = losses(lesson, "one_function", lesson["split_mlp"](), adam)
    assert abs(found - on_one).max() > 5e-4
    assert int(adam.iterations.numpy()) > 4


def test_what_is_quoted_of_adam_stands_in_its_source():
    source = inspect.getsource(tf_keras.optimizers.Adam.update_step)
    quoted = re.findall(r"^\d\. `(.+)`$", CELLS["adam-text"], re.M)
    assert len(quoted) == 3
    places = [source.rindex(line) for line in quoted]
    assert places == sorted(places)


def test_which_layers_take_layouts(lesson):
    layers, few = tf_keras.layers, {"filters": 4, "kernel_size": 3}
    columns = dtensor.Layout([dtensor.UNSHARDED, "model"], lesson["mesh"])
    layers.Dense(4, kernel_layout=columns)
    layers.Embedding(8, 4, embeddings_layout=columns)
    layers.LayerNormalization(gamma_layout=columns)
    for convolution in (layers.Conv1D, layers.Conv2D):
        convolution(**few, kernel_layout=columns)
    for convolution in (layers.DepthwiseConv2D, layers.SeparableConv2D):
        with pytest.raises(TypeError, match="kernel_layout"):
            convolution(3, 3, kernel_layout=columns)


def test_batch_normalisation_takes_four_layouts_and_images_need_fused_false(lesson):
    mesh = lesson["mesh"]
    four = {f"{name}_layout": dtensor.Layout(["model"], mesh) for name in FOUR}
    images = np.random.default_rng(0).random((8, 4, 4, 6), "float32")
    x = shard(images, dtensor.Layout(["batch", dtensor.UNSHARDED, dtensor.UNSHARDED, "model"], mesh))
    normalisation = tf_keras.layers.BatchNormalization
    with pytest.raises(tf.errors.OpError):
        tf.function(normalisation(**four))(x, training=True)
    eight = tf.function(normalisation(fused=False, **four))(x, training=True)
    np.testing.assert_allclose(to_numpy(eight), normalisation(fused=False)(images, training=True), atol=1e-5)


class WithNormalisation(tf_keras.Model):
    """A class of one's own whose layers take their layouts, or none."""

    def __init__(self, mesh=None):
        super().__init__()
        units, columns, four = (), (), {}
        if mesh:
            units = dtensor.Layout(["model"], mesh)
            columns = dtensor.Layout([dtensor.UNSHARDED, "model"], mesh)
            four = {f"{name}_layout": units for name in FOUR}
        both = {"kernel_layout": columns, "bias_layout": units} if mesh else {}
        self.hidden = tf_keras.layers.Dense(48, **both)
        self.normal = tf_keras.layers.BatchNormalization(**four)

    def call(self, x, training=False):
        return self.normal(self.hidden(x), training=training)


def test_a_class_with_a_normalisation_fails_under_a_map_and_is_right_with_arguments(lesson):
    x = shard(lesson["train_x"][:64], lesson["rows_of_x"])
    with lesson["layout_map"].scope():
        mapped = WithNormalisation()
    with pytest.raises(ValueError, match="expected ndim=3"):
        mapped(x)
    models = [WithNormalisation(lesson["mesh"]), WithNormalisation()]
    for model in models:
        tf_keras.utils.set_random_seed(1)
        model.build((None, 1200))
    expected = models[1](lesson["train_x"][:64])
    np.testing.assert_allclose(to_numpy(tf.function(models[0])(x)), expected, atol=1e-5)


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


def test_without_a_mesh_the_bias_moves_as_if_its_mean_was_written_and_its_square_was_not(lesson):
    names = {**lesson, "tf_keras": tf_keras}
    names["Adam"] = tf_keras.optimizers.Adam
    exec(CELLS["small"], names)
    x, y = names["small_x"][:16], names["small_y"][:16]
    _loss, gradients = lesson["loss_and_gradients"](names["small_mlp"](), x, y)
    largest = np.abs(gradients[1]).max()
    exec(CELLS["first-step"], names)
    pairs = zip(names["small"].weights, names["initial"], strict=True)
    moved = {weight.name: np.abs(to_numpy(weight) - before).max() for weight, before in pairs}
    bias = moved["hidden/bias:0"]
    assert moved["hidden/kernel:0"] == moved["logits/kernel:0"] == 0
    assert 0.0049 < moved["logits/bias:0"] < 0.0101
    counted = range(1, 9)  # by when some device has read the counter
    corrections = [np.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in counted]
    far = [0.01 * each * 0.1 * largest / 1e-7 for each in corrections]
    assert min(abs(bias / each - 1) for each in far) < 0.05
    assert far[0] == pytest.approx(350, rel=0.05)


def test_layers_of_keras_3_compute_on_a_mesh_with_given_values(lesson, on_one):
    ours = program("any_mesh")
    ours.values, ours.model_3 = lesson["values"], lesson["mlp"](keras)
    exec(CELLS["note-stateless"].partition("```python\n")[2].partition("```")[0], vars(ours))
    model = ours.Model(ours.make_layouts(ours.axes, {"hidden": "model"}, lesson["mesh"]))
    numbers = map(np.float32, range(1, 5))
    step = lambda x, y: ours.train_step(model, x, y, next(numbers), np.float32(0.01))[0]  # noqa: E731
    found = lesson["losses_of"](step, lesson["train_x"][:256], lesson["train_y"][:256], on_mesh=True)
    assert abs(found - on_one).max() < 1e-5


def test_without_a_mesh_slots_are_whole_and_gradients_are_gathered_for_them(lesson):
    model, adam = lesson["split_mlp"](), tf_keras.optimizers.Adam(0.01)
    adam.build(model.trainable_variables)
    x = shard(lesson["train_x"][:64], lesson["rows_of_x"])
    y = shard(lesson["train_y"][:64], lesson["rows_of_y"])
    _loss, gradients = tf.function(lesson["loss_and_gradients"])(model, x, y)
    apply = tf.function(lambda each: adam.apply_gradients(zip(each, model.trainable_variables, strict=True)))
    found = course_lib.collectives(apply, gradients)
    assert [each.mesh_dims for each in found] == [("model",)] * 6
    assert found[-1].payload_bytes == 48 * 4  # that of a slot of `hidden.bias`, which is up to date
    assert len(course_lib.collectives(apply, gradients, combine=True)) == 1
    slots = [slot.read_value() for slot in adam.variables if slot.shape == (1200, 48)]
    assert [dtensor.unpack(slot)[0].shape for slot in slots] == [(1200, 48)] * 2


@pytest.mark.parametrize("with_mesh", [True, False])
def test_a_metric_without_its_mesh_counts_too_many(lesson, with_mesh):
    mesh = lesson["mesh"]
    metric = tf_keras.metrics.SparseCategoricalAccuracy(**({"mesh": mesh} if with_mesh else {}))
    model = lesson["split_mlp"]()

    @tf.function
    def update(x, y):
        metric.update_state(y, model(x))

    for start in range(0, 256, 64):
        rows = slice(start, start + 64)
        x, y = lesson["train_x"][rows], lesson["train_y"][rows]
        update(shard(x, lesson["rows_of_x"]), shard(y, lesson["rows_of_y"]))
    dtensor.barrier(mesh)  # until every device has counted
    assert (int(metric.count.numpy()) == 256) == with_mesh
