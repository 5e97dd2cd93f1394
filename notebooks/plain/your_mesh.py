"""Your own mesh, against one device. Start it: python your_mesh.py."""

import math
import os

# Hides a harmless line of the log: "Incompatible Matrix dimensions"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED

# Names are yours; the product of the sizes is the number of devices
DIMS = [("rows", 4), ("inputs", 3)]

# For each axis of a tensor the dimension that splits it, or WHOLE:
# - one entry for each axis, and a dimension at most once in a tensor
# - the size of a dimension divides the length of the axis it splits
# - x and y split their rows alike: a device has the labels of its rows
specs = {
    "x": ["rows", "inputs"],
    "y": ["rows"],
    "W1": ["inputs", WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
}
BATCH, INPUTS, HIDDEN, CLASSES = 240, 480, 120, 12  # lengths of axes
STEPS, LEARNING_RATE = 20, 0.1

# Virtual devices, made before TensorFlow first uses its devices
num_devices = math.prod(size for _, size in DIMS)
cpu = tf.config.list_physical_devices("CPU")[0]
virtual_cpus = [tf.config.LogicalDeviceConfiguration()] * num_devices
tf.config.set_logical_device_configuration(cpu, virtual_cpus)
mesh = dtensor.create_mesh(DIMS, device_type="CPU")

# Made-up examples: noise around the center of each class
rng = np.random.default_rng(0)
train_y = rng.integers(0, CLASSES, STEPS * BATCH)
centers = rng.standard_normal((CLASSES, INPUTS), "float32") / 4
train_x = rng.standard_normal((STEPS * BATCH, INPUTS), "float32")
train_x += centers[train_y]

values = {
    "W1": rng.standard_normal((INPUTS, HIDDEN), "float32") / 20,
    "b1": np.zeros(HIDDEN, "float32"),
    "W2": rng.standard_normal((HIDDEN, CLASSES), "float32") / 10,
    "b2": np.zeros(CLASSES, "float32"),
}


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


@tf.function
def train_step(weights, x, y):
    with tf.GradientTape() as tape:
        logits = logits_of(weights, x)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(loss)
    gradients = tape.gradient(loss, weights)
    for name, gradient in gradients.items():
        weights[name].assign_sub(LEARNING_RATE * gradient)
    return loss


def shard(name, array):
    """Gives each device its part. An error begins with the name."""
    spec = specs[name]
    components = []
    try:
        if len(spec) != array.ndim:
            raise ValueError("one entry for each axis")
        layout = dtensor.Layout(spec, mesh)
        for at in mesh.local_device_locations():
            part = array
            for axis, dim in enumerate(spec):
                if dim != WHOLE:
                    parts = np.split(part, mesh.dim_size(dim), axis)
                    part = parts[at[dim]]
            components.append(tf.constant(part))
    except ValueError as error:
        where = f"{name}: {array.shape} as {spec}"
        raise ValueError(f"{where}: {error}") from None
    return dtensor.pack(components, layout)


one, mine = {}, {}
for name, value in values.items():
    one[name] = tf.Variable(value)
    mine[name] = dtensor.DVariable(shard(name, value))

for step in range(STEPS):
    rows = slice(BATCH * step, BATCH * (step + 1))
    x, y = tf.constant(train_x[rows]), tf.constant(train_y[rows])
    on_one = float(train_step(one, x, y))
    x, y = shard("x", train_x[rows]), shard("y", train_y[rows])
    on_mesh = float(train_step(mine, x, y))

    apart = abs(on_mesh - on_one)
    print(f"step {step + 1:2}: loss {on_mesh:.4f}, apart {apart:.0e}")
    assert apart < 1e-5

tensors = {"x": x, "y": y}
for name, weight in mine.items():
    tensors[name] = weight.value()
for name, tensor in tensors.items():
    part = dtensor.unpack(tensor)[0].shape
    print(name, tensor.shape, specs[name], "device 0 holds", part)
