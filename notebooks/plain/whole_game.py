"""Eight devices, one model: a run, a mistake, a split, a move, a strategy. Start it: python whole_game.py."""

import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# 4 and 16 work, too: a mesh of `batch` alone must cut 64 examples, and 2,000 to test on, into equal parts.
# For other meshes, such as 12 devices as 4 × 3, take your_mesh.py.
NUM_DEVICES = 8

cpu = tf.config.list_physical_devices("CPU")[0]
virtual_cpus = [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES
tf.config.set_logical_device_configuration(cpu, virtual_cpus)

# 6,400 examples to train on and 2,000 to test on; 200 of 1,200 numbers tell the label
rng = np.random.default_rng(1)
labels = rng.integers(0, 2, 8400)
features = rng.normal(size=(8400, 1200))
features[:, :200] += 0.12 * (2 * labels[:, np.newaxis] - 1)
features = (features / 35).astype("float32")
train_x, test_x = features[:6400], features[6400:]
train_y, test_y = labels[:6400], labels[6400:]

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

LEARNING_RATE = 3e-3


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = LEARNING_RATE * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


@tf.function
def train_step(model, x, y, step):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(weight, mean, square, gradient, step)

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


WHOLE = dtensor.UNSHARDED

specs = {
    "x": ["batch", WHOLE],
    "y": ["batch"],
    "W1": [WHOLE, WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
}
split_specs = dict(specs)
split_specs["W1"] = [WHOLE, "model"]
split_specs["b1"] = ["model"]
split_specs["W2"] = ["model", WHOLE]

cube_specs = dict(split_specs)
cube_specs["x"] = ["batch", "feature"]
cube_specs["W1"] = ["feature", "model"]


def layouts_on(mesh, specs):
    names = ["x", "y", *values]
    return {name: dtensor.Layout(specs[name], mesh) for name in names}


def shard(array, layout):
    for axis, dim in enumerate(layout.sharding_specs):
        length, num_parts = array.shape[axis], layout.num_shards(axis)
        if length % num_parts:
            raise ValueError(f"axis {axis}: {length} is not {num_parts} equal parts along {dim!r}")

    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                parts = np.split(part, layout.num_shards(axis), axis)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layout)


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


def train(model, layouts, steps, labels=train_y):
    for step in steps:
        rows = slice(64 * step, 64 * step + 64)
        x = place(train_x[rows], layouts.get("x"))
        y = place(labels[rows], layouts.get("y"))
        step_number = np.float32(step + 1)
        loss, accuracy = train_step(model, x, y, step_number)
        yield {
            "step": step + 1,
            "epoch": 1,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }


def test_accuracy(model, layouts):
    x = place(test_x, layouts.get("x"))
    y = place(test_y, layouts.get("y"))
    logits = logits_of(model.weights, x)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(hits))


def swapped(labels):
    """Labels of which devices 0 and 1 have each other's, in every batch of 64."""
    labels = labels.reshape(100, NUM_DEVICES, 64 // NUM_DEVICES)
    wrong = labels.copy()
    wrong[:, 0] = labels[:, 1]
    wrong[:, 1] = labels[:, 0]
    return wrong.reshape(6400)


def runs():
    """Yields the name, the records and the test accuracy of each run."""
    mesh = dtensor.create_mesh([("batch", NUM_DEVICES)], device_type="CPU")
    eight_layouts = layouts_on(mesh, specs)
    for name, layouts, labels in (
        ("one", {}, train_y),
        ("eight", eight_layouts, train_y),
        ("broken", eight_layouts, swapped(train_y)),
    ):
        model = Model(layouts)
        records = list(train(model, layouts, range(100), labels))
        yield name, records, test_accuracy(model, layouts)

    dims = [("batch", NUM_DEVICES // 2), ("model", 2)]
    grid = dtensor.create_mesh(dims, device_type="CPU")
    layouts = layouts_on(grid, split_specs)
    model = Model(layouts)
    records = list(train(model, layouts, range(50), train_y))
    path = tempfile.mkdtemp() + "/half-way"
    tf.train.Checkpoint(model=model).write(path)

    dims = [("batch", NUM_DEVICES // 4), ("feature", 2), ("model", 2)]
    cube = dtensor.create_mesh(dims, device_type="CPU")
    layouts = layouts_on(cube, cube_specs)
    model = Model(layouts)
    tf.train.Checkpoint(model=model).read(path).assert_consumed()
    records += train(model, layouts, range(50, 100), train_y)
    yield "moved", records, test_accuracy(model, layouts)


def fitted():
    """The mean loss of the same hundred steps under a strategy, with Keras."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        keras_model = tf.keras.Sequential(
            [
                tf.keras.Input((1200,)),
                tf.keras.layers.Dense(48, activation="relu"),
                tf.keras.layers.Dense(2),
            ]
        )
        keras_model.compile(
            optimizer=tf.keras.optimizers.Adam(LEARNING_RATE),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    keras_model.set_weights([values["W1"], values["b1"], values["W2"], values["b2"]])
    history = keras_model.fit(train_x[:6400], train_y[:6400], batch_size=64, shuffle=False, verbose=0)
    return history.history["loss"][0]


if __name__ == "__main__":
    losses = {}
    for name, records, accuracy in runs():
        losses[name] = np.array([record["loss"] for record in records])
        apart = np.abs(losses[name] - losses["one"]).max()
        print(f"{name:6} last loss {losses[name][-1]:.3f}, test accuracy {accuracy:.3f}, apart {apart:.0e}")
    assert np.allclose(losses["eight"], losses["one"], atol=1e-5)
    assert np.allclose(losses["moved"], losses["one"], atol=1e-5)
    assert not np.allclose(losses["broken"], losses["one"], atol=1e-3)
    print(f"fit    mean loss {fitted():.4f}, one device {losses['one'].mean():.4f}")
