"""What `large_trainings` says of accumulation, clipping, bfloat16 and dropout, and does not show."""

import numpy as np
import pytest

import course_lib
from course_lib import collectives, shard, to_numpy
from tests.course import program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

STEPS, RATE = 20, np.float32(3e-3)
FULL = 230_988  # bytes: the gradients of all weights, and the loss


@pytest.fixture(scope="module")
def lesson():
    return program("large_trainings")


def found_in(function, *arguments):
    return [(each.payload_bytes, each.mesh_dims) for each in collectives(function, *arguments)]


def oracle(lesson):
    """Returns the losses and weights of the recipe in NumPy, in float64, each batch at once."""
    weights = {name: value.astype("float64") for name, value in lesson.values.items()}
    means, squares = ({name: 0 * value for name, value in weights.items()} for _ in range(2))
    losses = []
    for step in range(STEPS):
        rows = slice(64 * step, 64 * step + 64)
        x, y = lesson.train_x[rows].astype("float64"), lesson.train_y[rows]
        drawn = [tf.random.stateless_uniform([16, 48], [step, part]).numpy() for part in range(4)]
        mask = 2.0 * (np.concatenate(drawn) >= 0.5)
        before = x @ weights["W1"] + weights["b1"]
        hidden = np.maximum(before, 0) * mask
        logits = hidden @ weights["W2"] + weights["b2"]
        exponentials = np.exp(logits - logits.max(1, keepdims=True))
        shares = exponentials / exponentials.sum(1, keepdims=True)
        losses.append(-np.log(shares[np.arange(64), y]).mean())
        shares[np.arange(64), y] -= 1
        of_logits = shares / 64
        of_hidden = of_logits @ weights["W2"].T * mask * (before > 0)
        gradients = {
            "W1": x.T @ of_hidden,
            "b1": of_hidden.sum(0),
            "W2": hidden.T @ of_logits,
            "b2": of_logits.sum(0),
        }
        norm = np.sqrt(sum((each**2).sum() for each in gradients.values()))
        rate = float(lesson.rate_of(step, STEPS))
        for name, gradient in gradients.items():
            clipped = gradient * min(1, lesson.LIMIT / norm)
            means[name] = 0.9 * means[name] + 0.1 * clipped
            squares[name] = 0.999 * squares[name] + 0.001 * clipped**2
            correction = np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
            weights[name] -= rate * correction * means[name] / (np.sqrt(squares[name]) + 1e-7)
    return losses, weights


@pytest.mark.parametrize("name", ["row", "grid"])
def test_all_five_together_are_the_step_of_one_device(lesson, name):
    losses, weights = oracle(lesson)
    model = lesson.made_on(name, tf.float32)
    ours = lesson.train(model, STEPS)
    assert np.abs(np.subtract(ours, losses)).max() < 5e-7
    for weight, value in weights.items():
        assert np.abs(to_numpy(model.weights[weight].read_value()) - value).max() < 3e-6


def test_a_micro_batch_exchanges_activations_alone_and_the_end_each_gradient_once(lesson):
    model = lesson.made_on("grid", tf.float32)
    x, y = lesson.micro_batch(0, model)
    seed = shard(np.zeros(2, "int32"), dtensor.Layout.replicated(model.mesh, 1))
    assert found_in(lesson.recipe_micro_batch, model, x, y, seed) == [(32, ("model",))]
    found = found_in(lesson.recipe_finish, model, np.float32(1), RATE)
    assert sorted(payload for payload, _dims in found) == [4, 4, 4, 4, 8, 96, 192, 115_200]
    assert sum(dims == ("model",) for _payload, dims in found) == 3


def test_a_device_makes_one_copy_of_the_weights_and_not_eight(lesson):
    model = lesson.made_on("row", tf.float32)
    context.enable_run_metadata()
    try:
        tf.function(lambda: lesson.copies_of(model)["W1"] + 1)()
        context.async_wait()
        graphs = [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
    finally:
        context.disable_run_metadata()
    nodes = [node for graph in graphs for node in graph.node if node.device == model.mesh.local_devices()[0]]
    shapes = [shape for node in nodes for shape in node.attr["_output_shapes"].list.shape]
    sizes = [np.prod([dim.size for dim in shape.dim]) for shape in shapes]
    assert max(sizes) == 1200 * 48


def simple(lesson):
    """Returns a model on the row, its gradients of a micro-batch, and four micro-batches."""
    model = lesson.made_on("row", tf.float32)
    layouts = lesson.make_layouts(lesson.axes, lesson.splits, model.mesh)

    def gradients(x, y):
        def forward(weights, x):
            return tf.nn.relu(x @ weights["W1"] + weights["b1"]) @ weights["W2"] + weights["b2"]

        with tf.GradientTape() as tape:
            logits = forward(model.weights, x)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.weights)

    parts = [
        (shard(lesson.train_x[at : at + 16], layouts["x"]), shard(lesson.train_y[at : at + 16], layouts["y"]))
        for at in range(0, 64, 16)
    ]
    return model, gradients, parts


def test_a_call_for_each_micro_batch_exchanges_its_gradients_each_time(lesson):
    model, gradients, parts = simple(lesson)

    def add(x, y):
        loss, found = gradients(x, y)
        for name, gradient in found.items():
            model.means[name].assign_add(gradient)
        return loss

    assert sum(payload for x, y in parts for payload, _dims in found_in(add, x, y)) == 4 * FULL


def test_a_while_loop_exchanges_gradients_in_each_of_its_rounds(lesson):
    model, gradients, parts = simple(lesson)
    x, y = parts[0]

    def looped(x, y):
        start = {name: tf.zeros_like(value) for name, value in model.weights.items()}

        def body(number, loss, total):
            new_loss, found = gradients(x, y)
            return number + 1, loss + new_loss, {name: total[name] + found[name] for name in total}

        return tf.while_loop(lambda number, *_: number < 4, body, (0, 0.0, start))

    assert sum(payload for payload, _dims in found_in(looped, x, y)) == FULL  # a loop's are listed once


def test_one_infinite_number_makes_every_clipped_number_nan_and_a_zero_one_still_moves_a_weight(lesson):
    gradients = {"long": tf.constant([1.0, np.inf]), "usual": tf.constant([1.0])}
    assert all(np.isnan(each).all() for each in lesson.clip(gradients, 1.0).values())
    assert float(lesson.adam(1.0, 0.5, 0.25, 0.0, np.float32(5), RATE)[0]) < 1 - 1e-4


def test_a_product_of_bfloat16_and_float32_is_refused_as_a_sparse_one(lesson):
    weights = lesson.made_on("row", tf.float32).weights
    x = shard(lesson.train_x[:16], dtensor.Layout(["batch", dtensor.UNSHARDED], lesson.MESHES["row"]))
    product = tf.function(lambda x: x @ weights["W1"])
    with pytest.raises(
        tf.errors.OpError, match=r"'tf\.SparseMatMul' op does not implement layout propagation\."
    ):
        product(tf.cast(x, tf.bfloat16))


def test_a_flag_that_the_function_computes_makes_zeros_of_what_is_infinite(lesson):
    whole = dtensor.Layout.replicated(lesson.MESHES["row"], 2)
    infinite = dtensor.copy_to_mesh(tf.constant([[1.0, np.inf]] * 512), whole)

    @tf.function
    def skipped(gradient):
        flag = tf.cast(tf.math.is_finite(tf.reduce_sum(gradient)), tf.float32)
        return tf.math.multiply_no_nan(gradient, flag)

    assert not dtensor.unpack(skipped(infinite))[7].numpy().any()
