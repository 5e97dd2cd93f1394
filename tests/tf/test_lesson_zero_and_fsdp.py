"""What `zero_and_fsdp` promises: the same training on every mesh, the bytes it names, its wrong forms."""

import functools

import numpy as np
import pytest

import course_lib
from course_lib import collectives, data, shard
from tests.course import COURSE, from_lesson, program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

from course_lib.devices.dtensor import mesh_spec  # noqa: E402

WHOLE = dtensor.UNSHARDED
STEPS, RATE = 20, np.float32(3e-3)
SHAPES = {"W1": (1200, 48), "b1": (48,), "W2": (48, 2), "b2": (2,)}
MEAN = "loss = tf.reduce_mean(losses)"
CELLS = {cell.cell_id: cell.source for cell in COURSE.lesson("zero_and_fsdp").cells}


def drawn(rows):
    random = np.random.default_rng(1)
    x = random.normal(size=(rows, 1200)).astype("float32") / 35
    return x, random.integers(0, 2, rows)


def initial():
    random = np.random.default_rng(0)
    scales = {"W1": np.sqrt(2 / 1200), "W2": np.sqrt(2 / 48)}
    return {
        name: random.normal(0, scales[name], shape).astype("float32") if name in scales else np.zeros(shape)
        for name, shape in SHAPES.items()
    }


def lesson(*cells, **names):
    """Returns what these cells of the lesson define; a step weights its rows, for those that are padding."""
    found = {"tf": tf, "np": np, "dtensor": dtensor, "shard": shard, "WHOLE": WHOLE, **names}
    for name in cells:
        source = CELLS[name].replace("(forward, model, x, y,", "(forward, model, x, y, rows,")
        exec(source.replace(MEAN, "loss = tf.reduce_sum(rows * losses) / tf.reduce_sum(rows)"), found)
    return found


def by_hand(x, y, batch):
    """Returns the losses of steps with Adam, in NumPy and float64."""
    weights = {name: value.astype(float) for name, value in initial().items()}
    means, squares = ({name: 0 * value for name, value in weights.items()} for _slot in range(2))
    losses = []
    for step in range(STEPS):
        rows = slice(step * batch, (step + 1) * batch)
        before = x[rows] @ weights["W1"] + weights["b1"]
        hidden = np.maximum(before, 0)
        logits = hidden @ weights["W2"] + weights["b2"]
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        losses.append(-np.log(shares[np.arange(batch), y[rows]]).mean())
        of_logits = (shares - np.eye(2)[y[rows]]) / batch
        of_before = (of_logits @ weights["W2"].T) * (before > 0)
        gradients = {
            "W1": x[rows].T @ of_before,
            "b1": of_before.sum(0),
            "W2": hidden.T @ of_logits,
            "b2": of_logits.sum(0),
        }
        for name, gradient in gradients.items():
            means[name] = 0.9 * means[name] + 0.1 * gradient
            squares[name] = 0.999 * squares[name] + 0.001 * gradient**2
            mean, square = means[name] / (1 - 0.9 ** (step + 1)), squares[name] / (1 - 0.999 ** (step + 1))
            guard = 1e-7 / np.sqrt(1 - 0.999 ** (step + 1))
            weights[name] -= RATE * mean / (np.sqrt(square) + guard)
    return np.array(losses)


@pytest.mark.parametrize("splits_weights", [False, True], ids=["ZeRO-1", "FSDP"])
@pytest.mark.parametrize("sizes", [(8,), (4, 2), (3, 2)], ids=str)
def test_zero_and_fsdp_train_as_one_device_and_exchange_what_was_predicted(sizes, splits_weights):
    devices = [f"CPU:{at}" for at in range(int(np.prod(sizes)))]
    dims = list(zip(("batch", "model"), sizes, strict=False))
    mesh = dtensor.create_mesh(dims, devices=devices)
    model_dim = "model" if len(sizes) > 1 else WHOLE
    specs = {"W1": [WHOLE, model_dim], "b1": [model_dim], "W2": [model_dim, WHOLE], "b2": [WHOLE]}
    copies = {name: dtensor.Layout(entries, mesh) for name, entries in specs.items()}
    split = lesson("exercise-axis")["split_over_batch"]
    parts = {
        name: dtensor.Layout(split(entries, SHAPES[name], sizes[0]), mesh) for name, entries in specs.items()
    }
    assert parts["b2"] == copies["b2"]

    cells = ["forward", "step", "place", "model", *(["gather"] if splits_weights else [])]
    found = lesson(
        *cells, values={name: v.astype("float32") for name, v in initial().items()}, replicated=copies
    )
    forward = found["fsdp_logits" if splits_weights else "logits_of"]
    model = found["Model"](parts if splits_weights else copies, parts)
    x, y = drawn(60 * STEPS)
    padding = -60 % sizes[0]  # 60 reviews, and as many rows of weight zero as the mesh needs
    row_weights = np.repeat([1.0, 0.0], [60, padding]).astype("float32")

    def batch(step):
        rows = slice(60 * step, 60 * step + 60)
        padded = np.pad(x[rows], [(0, padding), (0, 0)]), np.pad(y[rows], (0, padding)), row_weights
        entries = [WHOLE] * 2, [WHOLE], [WHOLE]
        return [
            shard(array, dtensor.Layout(["batch", *spec[1:]], mesh))
            for array, spec in zip(padded, entries, strict=True)
        ]

    seen = collectives(found["train_step"], forward, model, *batch(0), np.float32(1), RATE)
    local = {name: 4 * np.prod(dtensor.unpack(w)[0].shape) for name, w in on(copies).items()}
    predicted = [("batch", 4)] * 2 + [("batch", size) for size in local.values()]
    predicted += [("batch", local[name]) for name in SHAPES if parts[name] != copies[name]]
    if len(sizes) > 1:
        predicted.append(("model", 4 * (60 + padding) // sizes[0] * 2))
    observed = [("+".join(each.mesh_dims), each.payload_bytes) for each in seen if each.payload_bytes]
    weight_sum = ("batch", 4)  # of the rows
    assert sorted(observed) == sorted([*predicted, weight_sum])

    losses = [
        float(found["train_step"](forward, model, *batch(step), np.float32(step + 1), RATE)[0])
        for step in range(STEPS)
    ]
    assert np.abs(losses - by_hand(x, y, 60)).max() < 2e-6


def on(layouts):
    return {name: shard(np.zeros(SHAPES[name], "float32"), layout) for name, layout in layouts.items()}


@pytest.fixture(scope="module")
def eight():
    """Returns a mesh of eight, its layouts for copies and parts, and one batch."""
    mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
    copies = {name: dtensor.Layout([WHOLE] * len(shape), mesh) for name, shape in SHAPES.items()}
    parts = {
        name: dtensor.Layout(["batch", *[WHOLE] * (len(SHAPES[name]) - 1)], mesh)
        for name in ("W1", "b1", "W2")
    }
    parts["b2"] = copies["b2"]
    rows = dtensor.Layout(["batch", WHOLE], mesh), dtensor.Layout(["batch"], mesh)
    x, y = drawn(64)
    return copies, parts, (shard(x, rows[0]), shard(y, rows[1]))


def test_a_zero_on_x_computes_the_product_again_and_gathers_once(eight, optimized):
    copies, parts, batch = eight
    count_matmuls = from_lesson("zero_and_fsdp.graphs", "count_matmuls")
    initials = {name: value.astype("float32") for name, value in initial().items()}
    found = lesson("place", "model", values=initials, replicated=copies)
    for name in ("gathered-hidden", "gradients-with", "naive", "late"):
        source = CELLS[name].split("\n\n\nreport")[0]
        exec(source.replace("x, W1_late, b1_late", "x + zero, W1, b1"), found)
    step = functools.partial(found["gradients_with"], found["recomputed_hidden"])
    fsdp = found["Model"](parts, parts)
    assert count_matmuls(step, fsdp, *batch) == 6
    sums = [4 * int(np.prod(shape)) for shape in SHAPES.values()]
    gathers = [4 * int(np.prod(SHAPES[name])) for name in ("W1", "b1", "W2")]
    seen = sorted(each.payload_bytes for each in collectives(step, fsdp, *batch))
    assert seen == sorted([*sums, *gathers, 4])


@pytest.mark.parametrize(("splits_slots", "low", "high"), [(False, 5e-3, 5e-2), (True, 3e-4, 3e-3)])
def test_adam_that_reads_what_it_has_written_is_wrong_and_zero_hides_it(eight, splits_slots, low, high):
    copies, parts, _batch = eight
    reviews = data.tf_idf(data.load_imdb())
    x, y = reviews.train.features[: 64 * STEPS], reviews.train.labels[: 64 * STEPS]
    found = lesson("forward", "place", "model", values={n: v.astype("float32") for n, v in initial().items()})
    model = found["Model"](copies, parts if splits_slots else copies)

    @tf.function
    def step_that_reads(x, y, step):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, found["logits_of"](model.weights, x))
            loss = tf.reduce_mean(losses)
        for name, gradient in tape.gradient(loss, model.weights).items():
            mean, square = model.means[name], model.squares[name]
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * gradient**2)
            rate = RATE * tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            model.weights[name].assign_sub(rate * mean / (tf.sqrt(square) + 1e-7))
        return loss

    mesh = copies["W1"].mesh
    rows = dtensor.Layout(["batch", WHOLE], mesh), dtensor.Layout(["batch"], mesh)
    losses = []
    for step in range(STEPS):
        at = slice(64 * step, 64 * step + 64)
        batch = shard(x[at], rows[0]), shard(y[at], rows[1])
        losses.append(float(step_that_reads(*batch, np.float32(step + 1))))
    assert low < np.abs(losses - by_hand(x, y, 64)).max() < high


def test_the_plain_program_adds_up_gradients_once_and_a_split_gradient_takes_four_bytes_for_the_norm():
    plain = program("zero_and_fsdp")
    sums = [230_400, 192, 384, 8]
    gathers = sums[:3]
    for what, of_a_micro_batch, of_an_update in (
        ("none", [4], sums),
        ("optimizer", [4], [*sums, *gathers, 4, 4, 4]),
        ("variables", [4, *gathers], [*sums, 4, 4, 4]),
    ):
        layouts = plain.Layouts(what, 8)
        model = plain.Model(layouts)
        add, update = plain.make_functions(model, layouts)
        dealt = np.arange(64).reshape(8, 8)
        x = plain.place(plain.train_x[dealt], layouts.sums["x"])
        y = plain.place(plain.train_y[dealt], layouts.sums["y"])
        seen = [each.payload_bytes for each in collectives(add, x, y)]
        assert sorted(seen) == sorted(of_a_micro_batch)
        mesh = mesh_spec(layouts.sums["y"].mesh)
        seen = [each.payload_bytes for each in collectives(update, np.float32(1), RATE, mesh=mesh)]
        assert sorted(seen) == sorted(of_an_update)
