"""A test bench for an optimizer: Adam, one device and NumPy compared. Run it: python from_scratch.py"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight)  # GPUs: see mesh_and_layout.py

SIZES = [784, 700, 500, 10]
AXES = {"x": ["batch", ""], "y": ["batch"], "step": []}
AXES |= {"W1": ["", "hidden"], "b1": ["hidden"], "W2": ["hidden", ""], "b2": [""], "W3": ["", ""], "b3": [""]}


def layouts_on(dims, splits):
    """Returns a layout for each tensor, on a mesh with these dimensions, where `splits` cuts axes by name."""
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    layouts = {}
    for name, axes in AXES.items():
        layouts[name] = dtensor.Layout([splits.get(axis, dtensor.UNSHARDED) for axis in axes], mesh)
    return layouts


def shard(array, layout):
    """Returns a DTensor of which each device gets its part."""
    parts = []
    for place in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = np.split(part, layout.mesh.dim_size(dim), axis)[place[dim]]
        parts.append(part)
    return dtensor.pack(parts, layout)


def make_values(sizes, seed=0):
    rng = np.random.default_rng(seed)
    values = {}
    for layer in (1, 2, 3):
        inputs, outputs = sizes[layer - 1], sizes[layer]
        limit = np.sqrt(6 / (inputs + outputs))
        weight = rng.uniform(-limit, limit, (inputs, outputs))
        values[f"W{layer}"] = weight.astype("float32")
        values[f"b{layer}"] = np.zeros(outputs, "float32")
    return values


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    hidden = tf.nn.relu(hidden @ weights["W2"] + weights["b2"])
    return hidden @ weights["W3"] + weights["b3"]


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, values, layouts):
        super().__init__()
        self.weights = {}
        for name, value in values.items():
            self.weights[name] = variable(value, layouts.get(name))


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


class Adam(tf.Module):
    def __init__(self, values, layouts, learning_rate=1e-3):
        super().__init__()
        self.learning_rate = learning_rate
        self.step = variable(np.float32(0), layouts.get("step"))
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)

    def apply(self, weights, gradients):
        step = self.step + 1
        self.update(weights, gradients, step)
        self.step.assign(step)

    def update(self, weights, gradients, step):
        # First compute everything, then write it: DTensor may read what was written as it was before
        updates = {}
        for name, gradient in gradients.items():
            weight = weights[name]
            mean = self.means[name]
            square = self.squares[name]
            updates[name] = adam(weight, mean, square, gradient, step, self.learning_rate)

        for name, (weight, mean, square) in updates.items():
            weights[name].assign(weight)
            self.means[name].assign(mean)
            self.squares[name].assign(square)


@tf.function
def train_step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)
    optimizer.apply(model.weights, gradients)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits), gradients


def adam_in_numpy(weight, gradients, learning_rate):
    m = np.zeros_like(weight)
    v = np.zeros_like(weight)
    for t, g in enumerate(gradients, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        c = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        move = c * m / (np.sqrt(v) + 1e-7)
        weight = weight - learning_rate * move
    return weight


def ten_steps(values, layouts, x, y):
    """Returns ten losses, the last bias after one step, the first bias at the end, and its gradients."""
    model = Model(values, layouts)
    optimizer = Adam(values, layouts)
    losses, gradients = [], []
    for step in range(10):
        rows = slice(128 * step, 128 * (step + 1))
        some_x = place(x[rows], layouts.get("x"))
        some_y = place(y[rows], layouts.get("y"))
        loss, _, found = train_step(model, optimizer, some_x, some_y)
        losses.append(float(loss))
        gradients.append(whole(found["b1"]).astype("float64"))
        if step == 0:
            last_bias = whole(model.weights["b3"])
    return np.array(losses), last_bias, whole(model.weights["b1"]), gradients


def whole(tensor):
    """Returns all of a tensor or variable as an array, wherever its parts are."""
    tensor = tf.convert_to_tensor(tensor)
    if dtensor.is_dtensor(tensor):
        replicated = dtensor.Layout.replicated(dtensor.fetch_layout(tensor).mesh, tensor.shape.rank)
        tensor = dtensor.relayout(tensor, replicated)
    return tensor.numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    y = np.arange(1280) % 10
    x = rng.random((10, 784))[y] + rng.random((1280, 784))  # ten patterns, with noise
    x = np.float32(x / 2)
    values = make_values(SIZES)
    on_one = ten_steps(values, {}, x, y)
    meshes = {
        "one device": {},
        "batch 8": layouts_on([("batch", 8)], {"batch": "batch"}),
        "batch 4 x model 2": layouts_on([("batch", 4), ("model", 2)], {"batch": "batch", "hidden": "model"}),
    }
    for name, layouts in meshes.items():
        losses, last_bias, first_bias, gradients = ten_steps(values, layouts, x, y)
        assert np.allclose(np.abs(last_bias), 0.001, rtol=0.01)  # the first step of Adam
        from_losses = np.abs(losses - on_one[0]).max()
        expected = adam_in_numpy(np.zeros(700), gradients, 1e-3)
        from_numpy = np.abs(first_bias - expected).max()
        print(f"{name}: loss {losses[-1]:.4f}, off by {from_losses:.0e}; from NumPy by {from_numpy:.0e}")
        assert from_losses < 1e-5
        assert from_numpy < 1e-5
