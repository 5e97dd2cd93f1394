"""What lesson 08 says of Keras and does not show: seeds, late updates, forgotten meshes."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest

import course_lib
from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.combining import no_combining
from course_lib.dtensor import create_mesh, mesh_spec, pack, to_layout, to_numpy

tf = course_lib.start_tensorflow()
import tf_keras  # noqa: E402

# Four devices, which compile in half the time; the exercise of the step holds the same on eight.
GRID = MeshSpec([("batch", 2), ("model", 2)])
MESH = create_mesh(GRID)
ALL = create_mesh(MeshSpec([("batch", 4), ("model", 2)]))  # for a DTensorDataset, which needs them
ROWS, LABELS = LayoutSpec(["batch", UNSHARDED], GRID), LayoutSpec(["batch"], GRID)
SHAPES = {(6, 8): (UNSHARDED, "model"), (8,): ("model",), (8, 3): ("model", UNSHARDED), (3,): (UNSHARDED,)}


def real(*entries, mesh=MESH):
    return to_layout(LayoutSpec(entries, mesh_spec(mesh)), mesh)


def first_values():
    random = np.random.default_rng(0)
    return [random.normal(0, 0.5, shape).astype("float32") for shape in SHAPES]


def split_model(*, bias_layout=True, mesh=MESH):
    tf_keras.utils.set_random_seed(0)
    hidden, hidden_bias, last, last_bias = (real(*entries, mesh=mesh) for entries in SHAPES.values())
    hidden_bias = hidden_bias if bias_layout else None
    dense = tf_keras.layers.Dense
    model = tf_keras.Sequential(
        [
            tf_keras.Input((6,)),
            dense(8, activation="relu", kernel_layout=hidden, bias_layout=hidden_bias),
            dense(3, kernel_layout=last, bias_layout=last_bias),
        ]
    )
    model.set_weights(first_values())
    return model


def whole_model():
    layers = [tf_keras.layers.Dense(8, activation="relu"), tf_keras.layers.Dense(3)]
    model = tf_keras.Sequential([tf_keras.Input((6,)), *layers])
    model.set_weights(first_values())
    return model


def batches(split):
    random = np.random.default_rng(1)
    for _batch in range(3):
        inputs, labels = random.normal(size=(8, 6)).astype("float32"), random.integers(0, 3, 8)
        yield (pack(inputs, ROWS, MESH), pack(labels, LABELS, MESH)) if split else (inputs, labels)


def one_function(model, optimizer):
    compute, apply = two_parts(model, optimizer)

    @tf.function
    def step(inputs, labels):
        loss, found = compute(inputs, labels)
        apply(found)
        return loss

    return step


def applied_outside(model, optimizer, compiled=lambda function: function):
    compute, apply = two_parts(model, optimizer)
    compute, apply = tf.function(compute), compiled(apply)

    def step(inputs, labels):
        loss, found = compute(inputs, labels)
        apply(found)
        return loss

    return step


def applied_in_another(model, optimizer):
    return applied_outside(model, optimizer, tf.function)


def two_parts(model, optimizer):
    def compute(inputs, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs)))
        return loss, tape.gradient(loss, model.trainable_variables)

    def apply(found):
        optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))

    return compute, apply


def trained(model, optimizer, *, split, make_step=one_function):
    step = make_step(model, optimizer)
    return [float(step(*batch)) for batch in batches(split)]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_compiled_step_is_late_and_right_once_nothing_is_combined(name):
    make = getattr(tf_keras.optimizers, name)
    right = trained(whole_model(), make(0.1), split=False)
    late = trained(split_model(), make(0.1, mesh=MESH), split=True)
    assert late[0] == pytest.approx(right[0], abs=1e-5)  # before any update
    assert max(np.abs(np.subtract(late, right))) > 1e-2
    with no_combining():
        apart = trained(split_model(), make(0.1, mesh=MESH), split=True)
    np.testing.assert_allclose(apart, right, atol=1e-5)


def test_a_function_that_is_compiled_again_has_to_be_so_in_the_block():
    def losses(model, optimizer, split, block):
        step, random, found = one_function(model, optimizer), np.random.default_rng(1), []
        for at, size in enumerate((8, 16, 16)):
            batch = random.normal(size=(size, 6)).astype("float32"), random.integers(0, 3, size)
            if split:
                batch = pack(batch[0], ROWS, MESH), pack(batch[1], LABELS, MESH)
            with no_combining() if at in block else contextlib.nullcontext():
                found.append(float(step(*batch)))
        return found

    sgd = tf_keras.optimizers.SGD
    right = losses(whole_model(), sgd(0.1), False, ())
    np.testing.assert_allclose(losses(split_model(), sgd(0.1, mesh=MESH), True, (0, 1)), right, atol=1e-5)
    late = losses(split_model(), sgd(0.1, mesh=MESH), True, (0,))
    assert abs(late[2] - right[2]) > 1e-3


@pytest.mark.parametrize(
    ("name", "make_step"), [("SGD", applied_outside), ("Adam", applied_outside), ("Adam", applied_in_another)]
)
def test_gradients_that_another_function_applies_train_rightly(name, make_step):
    make, one, eight = getattr(tf_keras.optimizers, name), whole_model(), split_model()
    right = trained(one, make(0.1), split=False)
    found = trained(eight, make(0.1, mesh=MESH), split=True, make_step=make_step)
    np.testing.assert_allclose(found, right, atol=1e-5)
    for ours, theirs in zip(eight.weights, one.weights, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs.numpy(), atol=1e-5)


@pytest.mark.parametrize(("make_step", "is_late"), [(applied_outside, False), (applied_in_another, True)])
def test_an_optimizer_that_clips_by_norms_is_right_only_outside_a_function(make_step, is_late):
    sgd = tf_keras.optimizers.SGD
    right = trained(whole_model(), sgd(0.5, clipnorm=0.1), split=False)
    found = trained(split_model(), sgd(0.5, clipnorm=0.1, mesh=MESH), split=True, make_step=make_step)
    assert (max(np.abs(np.subtract(found, right))) > 1e-3) == is_late


def test_a_layer_that_lacks_a_layout_is_refused_outside_a_compiled_function():
    tf_keras.utils.set_random_seed(0)
    layer = tf_keras.layers.Dense(8, kernel_layout=real(UNSHARDED, "model"))
    with pytest.raises(
        tf.errors.UnimplementedError, match="only scalars and small integer/string tensors are auto-broadcast"
    ):
        layer(next(batches(True))[0])


def test_a_layer_that_lacks_a_layout_is_right_in_a_compiled_function():
    found = tf.function(split_model(bias_layout=False))(next(batches(True))[0])
    np.testing.assert_allclose(to_numpy(found), whole_model()(next(batches(False))[0]), atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "kind", "size"), [((6,), "Dropout", 0.5), ((5, 6), "LSTM", 8)], ids=["dropout", "lstm"]
)
def test_dropout_under_a_map_asks_for_a_generator(shape, kind, size):
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=MESH)
    with pytest.raises(ValueError, match="enable_tf_random_generator"), layouts.scope():
        tf_keras.Sequential([tf_keras.Input(shape), getattr(tf_keras.layers, kind)(size)])


def without_a_mesh() -> dict[str, object]:
    """Returns the losses of Adam on one device, and without a mesh on eight: in one function, and outside."""
    adam, outside, counting = (tf_keras.optimizers.Adam(0.1) for _ in range(3))
    found = {
        "one device": trained(whole_model(), adam, split=False),
        "outside": trained(split_model(), outside, split=True, make_step=applied_outside),
    }
    with no_combining():
        found["in one function"] = trained(split_model(), counting, split=True)
    return found | {"count": int(counting.iterations.numpy())}


@pytest.fixture(scope="module")
def adams():
    # DTensor sends what has no mesh to the first mesh that a process used: here that has to be `MESH`.
    program = "import course_lib; course_lib.setup(devices=8); from tests.tf import test_lesson_08 as own; "
    program += "import json; print(json.dumps(own.without_a_mesh()))"
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_step_of_an_adam_without_a_mesh_is_wrong_even_uncombined(adams):
    assert max(np.abs(np.subtract(adams["in one function"], adams["one device"]))) > 1e-2
    assert adams["count"] > 3  # of three steps: each device adds one


def test_an_adam_without_a_mesh_is_right_outside_a_compiled_function(adams):
    np.testing.assert_allclose(adams["outside"], adams["one device"], atol=1e-5)


def test_a_metric_with_a_mesh_gives_what_one_device_gives():
    def accuracies(network, *, split, **options):
        metric = tf_keras.metrics.SparseCategoricalAccuracy(**options)

        @tf.function
        def update(inputs, labels):
            metric.update_state(labels, network(inputs))
            return metric.result()

        return [float(update(*batch)) for batch in batches(split)]

    found = accuracies(split_model(), split=True, mesh=MESH)
    assert found == accuracies(whole_model(), split=False)


def test_a_metric_without_a_mesh_counts_what_each_device_has_counted():
    metric, network = tf_keras.metrics.SparseCategoricalAccuracy(), split_model()

    @tf.function
    def update(inputs, labels):
        metric.update_state(labels, network(inputs))

    for batch in batches(True):
        update(*batch)
    tf.experimental.dtensor.barrier(MESH)  # until the last device has counted
    assert metric.count.numpy() > 24


def dataset(rows, mesh, layouts):
    return tf.experimental.dtensor.DTensorDataset(
        rows, mesh=mesh, layouts=layouts, global_batch_size=8, batch_dim="batch"
    )


def fitted(model, examples):
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(0.01, mesh=ALL), loss)
    with no_combining():
        return model.fit(examples, steps_per_epoch=3, verbose=0).history["loss"][0]


def test_fit_counts_rightly_only_for_a_model_made_under_a_map():
    one = whole_model()
    one.compile(
        tf_keras.optimizers.Adam(0.01), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    inputs, labels = (np.concatenate(each) for each in zip(*batches(False), strict=True))
    right = one.fit(inputs, labels, batch_size=8, shuffle=False, verbose=0).history["loss"][0]
    rows = tf.data.Dataset.from_tensor_slices((inputs, labels))
    layouts = real("batch", UNSHARDED, mesh=ALL), real("batch", mesh=ALL)
    examples = [dataset(rows, ALL, layouts) for _model in range(2)]
    with tf_keras.dtensor.experimental.LayoutMap(mesh=ALL).scope():
        mapped = tf_keras.Sequential(
            [
                tf_keras.Input((6,)),
                tf_keras.layers.Dense(8, activation="relu"),
                tf_keras.layers.Dense(3),
            ]
        )
    mapped.set_weights(first_values())
    assert fitted(mapped, examples[0]) == pytest.approx(right, abs=1e-5)
    assert (
        fitted(split_model(mesh=ALL), examples[1]) < right / 1.5
    )  # the loss is divided by more examples than came
