"""Data-parallel training steps on eight devices, compared with one device. Start it: python one_step.py."""

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

normal = np.random.default_rng(0).normal
W1 = normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

# Data parallelism: the batch is split, the model is replicated
WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}


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


def spread(tensor):
    copies = [copy.numpy() for copy in dtensor.unpack(tensor)]
    # For each number, the largest copy minus the smallest
    differences = np.max(copies, axis=0) - np.min(copies, axis=0)
    return differences.max()


if __name__ == "__main__":
    one = MLP(values)
    eight = MLP(values, layouts)
    for step in range(5):
        rows = slice(64 * step, 64 * step + 64)
        x, y = tf.constant(train_x[rows]), tf.constant(train_y[rows])
        on_one, _ = train_step(one, x, y, 0.5)

        x = shard(train_x[rows], layouts["x"])
        y = shard(train_y[rows], layouts["y"])
        on_eight, _ = train_step(eight, x, y, 0.5)

        difference = abs(float(on_eight) - float(on_one))
        print(f"step {step + 1}: loss {float(on_one):.4f}, eight devices differ by {difference:.0e}")
        assert difference < 1e-5

    for weight in eight.trainable_variables:
        # `value()`, since `read_value()` would hand device 0's copy to all
        assert spread(weight.value()) == 0
    print("the eight copies of the model are exactly equal")
