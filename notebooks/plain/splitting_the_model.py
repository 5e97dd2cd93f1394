"""A residual network split over eight devices, compared with one. Start it: python splitting_the_model.py."""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor, made before TensorFlow first uses its devices
cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

# Five batches of 64 examples; 200 of 1,200 numbers tell the label
rng = np.random.default_rng(1)
train_y = rng.integers(0, 2, 5 * 64)
features = rng.normal(size=(5 * 64, 1200))
features[:, :200] += 0.12 * (2 * train_y[:, np.newaxis] - 1)
train_x = (features / 35).astype("float32")

# Two blocks, each from the stream (48 numbers) up to 192 hidden units and down again
sizes = {"features": 1200, "first": 48, "stream": 48, "hidden": 192, "classes": 2}
axes = {
    "x": ("batch", "features"),
    "y": ("batch",),
    "W_in": ("features", "first"),
    "U1": ("stream", "hidden"),
    "D1": ("hidden", "stream"),
    "U2": ("stream", "hidden"),
    "D2": ("hidden", "stream"),
    "W_out": ("stream", "classes"),
}
normal = np.random.default_rng(0).normal
values = {}
for name in ["W_in", "U1", "D1", "U2", "D2", "W_out"]:
    rows, columns = axes[name]
    shape = sizes[rows], sizes[columns]
    array = normal(0, np.sqrt(1 / shape[0]), shape)
    values[name] = array.astype("float32")

# The hidden units and the columns of W_in are split over `model`, the stream is whole
WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
splits = {"batch": "batch", "hidden": "model", "first": "model"}


def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entries.append(splits.get(name, WHOLE))
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


def shard(array, layout):
    """Cuts an array, sends each device its part, and packs the parts into a DTensor."""
    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                parts = np.split(part, layout.num_shards(axis), axis)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layout)


class Residual(tf.Module):
    def __init__(self, values, layouts=None, stream_layout=None):
        super().__init__()
        self.stream_layout = stream_layout

        def variable(name):
            if layouts is None:
                return tf.Variable(values[name])
            cut = shard(values[name], layouts[name])
            return dtensor.DVariable(cut)

        self.W_in = variable("W_in")
        self.U1 = variable("U1")
        self.D1 = variable("D1")
        self.U2 = variable("U2")
        self.D2 = variable("D2")
        self.W_out = variable("W_out")

    def __call__(self, x):
        stream = x @ self.W_in
        if self.stream_layout is not None:
            stream = dtensor.relayout(stream, self.stream_layout)
        stream = stream + tf.nn.relu(stream @ self.U1) @ self.D1
        stream = stream + tf.nn.relu(stream @ self.U2) @ self.D2
        return stream @ self.W_out


@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


if __name__ == "__main__":
    layouts = make_layouts(axes, splits, mesh)
    whole_rows = dtensor.Layout(["batch", WHOLE], mesh)
    one = Residual(values)
    eight = Residual(values, layouts, whole_rows)

    for name, value in values.items():
        part = dtensor.unpack(getattr(eight, name).read_value())[0]
        print(f"{name}: {value.shape}, a device holds {tuple(part.shape)}")

    for step in range(5):
        rows = slice(64 * step, 64 * step + 64)
        x, y = tf.constant(train_x[rows]), tf.constant(train_y[rows])
        on_one, _ = train_step(one, x, y, 0.1)

        x = shard(train_x[rows], layouts["x"])
        y = shard(train_y[rows], layouts["y"])
        on_eight, _ = train_step(eight, x, y, 0.1)

        difference = abs(float(on_eight) - float(on_one))
        print(f"step {step + 1}: loss {float(on_one):.4f}, eight devices differ by {difference:.0e}")
        assert difference < 1e-5
    print("split over eight devices, the network trains as on one")
