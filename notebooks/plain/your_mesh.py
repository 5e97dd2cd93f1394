"""Your own mesh, against one device. Start it: python your_mesh.py."""

import math
import os

# Hides a harmless line of the log: "Incompatible Matrix dimensions"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED

# The mesh: the product of the sizes is the number of devices
DIMS = [("batch", 4), ("model", 3)]

# The axes of each tensor, and their lengths. A third weight needs its
# axes here, a length for each new one, and a line in `logits_of`.
axes = {
    "x": ["rows", "inputs"],
    "y": ["rows"],
    "W1": ["inputs", "hidden"],
    "b1": ["hidden"],
    "W2": ["hidden", "classes"],
    "b2": ["classes"],
}
lengths = {"rows": 240, "inputs": 480, "hidden": 120, "classes": 12}

# Which dimension of the mesh splits which axis. It may not split two
# axes of one tensor, and its size must divide the length of the axis.
splits = {"rows": "batch", "hidden": "model"}

STEPS, LEARNING_RATE = 20, 0.1

# Virtual devices, made before TensorFlow first uses its devices
num_devices = math.prod(size for _, size in DIMS)
cpu = tf.config.list_physical_devices("CPU")[0]
virtual_cpus = [tf.config.LogicalDeviceConfiguration()] * num_devices
tf.config.set_logical_device_configuration(cpu, virtual_cpus)
mesh = dtensor.create_mesh(DIMS, device_type="CPU")

used = [axis for its_axes in axes.values() for axis in its_axes]
for axis in used:
    if axis not in lengths:
        raise ValueError(f"{axis}: `lengths` has no length for it")
for axis, dim in splits.items():
    if axis not in used:
        raise ValueError(f"{axis}: no tensor has such an axis")
    if dim not in dict(DIMS):
        raise ValueError(f"{axis}: the mesh has no dimension {dim!r}")
    if lengths[axis] % dict(DIMS)[dim]:
        parts = f"{dict(DIMS)[dim]} equal parts along {dim!r}"
        raise ValueError(f"{axis}: {lengths[axis]} is not {parts}")
for dim in dict(DIMS):
    if dim not in splits.values():
        print(f"{dim!r} splits no axis: its devices do the same work")

layouts = {}
for name, its_axes in axes.items():
    spec = [splits.get(axis, WHOLE) for axis in its_axes]
    try:
        layouts[name] = dtensor.Layout(spec, mesh)
    except ValueError as error:
        raise ValueError(f"{name} as {spec}: {error}") from None

# Made-up examples: noise around the center of each class
rng = np.random.default_rng(0)
BATCH, INPUTS = lengths["rows"], lengths["inputs"]
train_y = rng.integers(0, lengths["classes"], STEPS * BATCH)
centers = rng.standard_normal((lengths["classes"], INPUTS)) / 4
train_x = rng.standard_normal((STEPS * BATCH, INPUTS))
train_x = (train_x + centers[train_y]).astype("float32")

values = {}
for name, its_axes in axes.items():
    if name not in ("x", "y"):
        shape = [lengths[axis] for axis in its_axes]
        values[name] = np.zeros(shape, "float32")
        if len(shape) == 2:
            values[name] += rng.standard_normal(shape) / shape[0] ** 0.5


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def train_step(weights, x, y):
    with tf.GradientTape() as tape:
        logits = logits_of(weights, x)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(loss)
    gradients = tape.gradient(loss, weights)
    for name, gradient in gradients.items():
        if gradient is None:
            raise ValueError(f"{name}: the loss doesn't depend on it")
        weights[name].assign_sub(LEARNING_RATE * gradient)
    return loss


# Two graphs: that of the mesh may get a step of its own, with relayout
step_on_one = tf.function(train_step)
step_on_mesh = tf.function(train_step)


def shard(name, array):
    """Gives each device its part of an array."""
    components = []
    for at in mesh.local_device_locations():
        part = array
        for number, axis in enumerate(axes[name]):
            if axis in splits:
                dim = splits[axis]
                parts = np.split(part, mesh.dim_size(dim), number)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layouts[name])


one, mine = {}, {}
for name, value in values.items():
    one[name] = tf.Variable(value)
    mine[name] = dtensor.DVariable(shard(name, value))

for step in range(STEPS):
    batch = slice(BATCH * step, BATCH * (step + 1))
    x, y = tf.constant(train_x[batch]), tf.constant(train_y[batch])
    on_one = float(step_on_one(one, x, y))
    x, y = shard("x", train_x[batch]), shard("y", train_y[batch])
    on_mesh = float(step_on_mesh(mine, x, y))

    apart = abs(on_mesh - on_one)
    print(f"step {step + 1:2}: loss {on_mesh:.4f}, apart {apart:.0e}")
    assert apart < 1e-5, "Not the step of one device: Silent mistakes"

print("Device 0 holds")
tensors = {"x": x, "y": y}
for name, weight in mine.items():
    tensors[name] = weight.value()
for name, tensor in tensors.items():
    # An ordinary tensor: its `.numpy()` gives the numbers
    part = dtensor.unpack(tensor)[0]
    print(f"{part.shape} of {name} {tensor.shape}, axes {axes[name]}")
