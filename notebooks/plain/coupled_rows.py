"""Batch normalization on eight devices, three ways to split, a padded last batch: python coupled_rows.py."""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

# 676 examples: ten batches of 64, and 36 are left. 200 of the 1,200 numbers tell the label
rng = np.random.default_rng(1)
train_y = rng.integers(0, 2, 676)
train_x = rng.normal(size=(676, 1200))
train_x[:, :200] += 0.12 * (2 * train_y[:, np.newaxis] - 1)
train_x = (train_x / 35).astype("float32")

normal = np.random.default_rng(0).normal
W1 = normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

# Three meshes of eight devices. Data parallel: the rows of a batch are split
WHOLE = dtensor.UNSHARDED
row = dtensor.create_mesh([("batch", 8)], device_type="CPU")
data_layouts = {
    "x": dtensor.Layout(["batch", WHOLE], row),
    "y": dtensor.Layout(["batch"], row),
    "row_weights": dtensor.Layout(["batch", WHOLE], row),
    "W1": dtensor.Layout([WHOLE, WHOLE], row),
    "b1": dtensor.Layout([WHOLE], row),
    "W2": dtensor.Layout([WHOLE, WHOLE], row),
    "b2": dtensor.Layout([WHOLE], row),
}

# Model parallel: the hidden units are split as well, so each device normalises half of them
grid = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
model_layouts = {
    "x": dtensor.Layout(["batch", WHOLE], grid),
    "y": dtensor.Layout(["batch"], grid),
    "row_weights": dtensor.Layout(["batch", WHOLE], grid),
    "W1": dtensor.Layout([WHOLE, "model"], grid),
    "b1": dtensor.Layout(["model"], grid),
    "W2": dtensor.Layout(["model", WHOLE], grid),
    "b2": dtensor.Layout([WHOLE], grid),
}

# Spatial parallel: and the numbers of each example
dims = [("batch", 2), ("feature", 2), ("model", 2)]
cube = dtensor.create_mesh(dims, device_type="CPU")
spatial_layouts = {
    "x": dtensor.Layout(["batch", "feature"], cube),
    "y": dtensor.Layout(["batch"], cube),
    "row_weights": dtensor.Layout(["batch", WHOLE], cube),
    "W1": dtensor.Layout(["feature", "model"], cube),
    "b1": dtensor.Layout(["model"], cube),
    "W2": dtensor.Layout(["model", WHOLE], cube),
    "b2": dtensor.Layout([WHOLE], cube),
}


def shard(array, layout):
    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                parts = np.split(part, layout.num_shards(axis), axis)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layout)


def normalize(hidden, mean, variance):
    return (hidden - mean) / tf.sqrt(variance + 1e-5)


class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()

        def variable(name):
            if layouts is None:
                return tf.Variable(values[name])
            cut = shard(values[name], layouts[name])
            return dtensor.DVariable(cut)

        self.W1 = variable("W1")
        self.b1 = variable("b1")
        self.W2 = variable("W2")
        self.b2 = variable("b2")

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        return hidden @ self.W2 + self.b2


class WeightedMLP(MLP):
    def __call__(self, x, row_weights):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.weighted_moments(hidden, axes=[0], frequency_weights=row_weights)
        hidden = normalize(hidden, mean, variance)
        return hidden @ self.W2 + self.b2


@tf.function
def weighted_step(model, x, y, row_weights, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x, row_weights)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        # (64, 1) becomes (64,), like the losses
        row_losses = tf.squeeze(row_weights, axis=1) * losses
        loss = tf.reduce_sum(row_losses) / tf.reduce_sum(row_weights)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    return loss


def train_on_one_device():
    """The losses of an epoch; its last batch has 36 rows, and no padding."""
    model = WeightedMLP(values)
    losses = []
    for first in range(0, len(train_y), 64):
        x = train_x[first : first + 64]
        y = train_y[first : first + 64]
        row_weights = np.ones((len(y), 1), "float32")
        losses.append(float(weighted_step(model, x, y, row_weights, 0.1)))
    return losses


def train_on_eight(layouts):
    """The same epoch; its last batch is padded to 64 rows, and the padding has weight 0."""
    model = WeightedMLP(values, layouts)
    losses = []
    for first in range(0, len(train_y), 64):
        x = train_x[first : first + 64]
        y = train_y[first : first + 64]
        padding = 64 - len(y)
        row_weights = np.pad(np.ones((len(y), 1), "float32"), [(0, padding), (0, 0)])
        x = shard(np.pad(x, [(0, padding), (0, 0)]), layouts["x"])
        y = shard(np.pad(y, [(0, padding)]), layouts["y"])
        row_weights = shard(row_weights, layouts["row_weights"])
        losses.append(float(weighted_step(model, x, y, row_weights, 0.1)))
    return losses


if __name__ == "__main__":
    one = train_on_one_device()
    print("one device", *[f"{loss:.4f}" for loss in one])
    for scheme, layouts in [
        ("data", data_layouts),
        ("model", model_layouts),
        ("spatial", spatial_layouts),
    ]:
        eight = train_on_eight(layouts)
        apart = max(abs(ours - theirs) for ours, theirs in zip(eight, one))
        print(f"{scheme:10}", *[f"{loss:.4f}" for loss in eight], f"apart {apart:.0e}")
        assert apart < 1e-3
