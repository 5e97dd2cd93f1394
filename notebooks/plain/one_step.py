"""Data-parallel training steps on eight devices, compared with the same steps on one device.

Run it: python one_step.py
"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On GPUs (not tried): keep as many virtual CPUs as there are GPUs, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
WHOLE = dtensor.UNSHARDED
WEIGHT = dtensor.Layout([WHOLE, WHOLE], mesh)  # every weight whole on every device
BIAS = WEIGHT.delete([0])
ROWS = dtensor.Layout(["batch", WHOLE], mesh)  # the rows of a batch split
LAYOUTS = {"W1": WEIGHT, "b1": BIAS, "W2": WEIGHT, "b2": BIAS, "x": ROWS, "y": ROWS.delete([1])}


def distribute(array, layout):
    """Sends each device its part of an array, and no more."""
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


def make_variable(value, layout=None):
    return tf.Variable(value) if layout is None else dtensor.DVariable(distribute(value, layout))


class MLP(tf.Module):
    def __init__(self, values, layouts=None, normalise=True):
        super().__init__()
        self.normalise = normalise
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        if self.normalise:
            mean, variance = tf.nn.moments(hidden, axes=[0])  # of the whole batch, wherever its rows lie
            hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return hidden @ self.W2 + self.b2


def sums(model, x, y):
    logits = model(x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return tf.reduce_sum(losses), tf.reduce_sum(hits)


@tf.function  # without it DTensor refuses this step
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        loss, hits = sums(model, x, y)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):  # all gradients are there
        variable.assign_sub(learning_rate * gradient)
    return loss / x.shape[0], hits / x.shape[0]


def initial_values(seed, number_type="float32", features=1200, hidden=48, classes=2):
    random = np.random.default_rng(seed)
    W1 = random.normal(0, np.sqrt(2 / features), (features, hidden))  # He's standard deviation
    W2 = random.normal(0, np.sqrt(2 / hidden), (hidden, classes))
    values = {"W1": W1, "b1": np.zeros(hidden), "W2": W2, "b2": np.zeros(classes)}
    return {name: value.astype(number_type) for name, value in values.items()}


if __name__ == "__main__":
    x = np.random.default_rng(1).normal(size=(64, 1200)) / np.sqrt(1200)
    y = (x[:, 0] > 0).astype("int64")
    for number_type, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
        values, rows = initial_values(0, number_type), x.astype(number_type)
        eight, one = MLP(values, LAYOUTS), MLP(values)
        for step in range(5):
            split = distribute(rows, LAYOUTS["x"]), distribute(y, LAYOUTS["y"])
            on_eight = float(train_step(eight, *split, 1e-2)[0])
            on_one = float(train_step(one, tf.constant(rows), tf.constant(y), 1e-2)[0])
            print(f"{number_type}, step {step}: {on_one:.4f}, on eight devices {on_eight - on_one:+.0e}")
            assert abs(on_eight - on_one) < tolerance
