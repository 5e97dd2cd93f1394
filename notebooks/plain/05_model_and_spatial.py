"""One model under three sets of layouts; each goes on from a checkpoint of any other.

Run it: python 05_model_and_spatial.py FOLDER --scheme data|model|spatial|one
Run it again with another scheme and the same folder: training goes on from the last checkpoint.
"""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

WHOLE = dtensor.UNSHARDED
WEIGHTS = {"W1": ("features", "hidden"), "b1": ("hidden",), "W2": ("hidden", "classes"), "b2": ("classes",)}
AXES = {**WEIGHTS, "x": ("batch", "features"), "y": ("batch",)}  # tensors that share an axis share its split
SCHEMES = {  # the mesh, and which of its dimensions splits which axis
    "one": ([("batch", 1)], {}),
    "data": ([("batch", 8)], {"batch": "batch"}),
    "model": ([("batch", 4), ("model", 2)], {"batch": "batch", "hidden": "model"}),
    "spatial": (
        [("batch", 2), ("feature", 2), ("model", 2)],
        {"batch": "batch", "features": "feature", "hidden": "model"},
    ),
}


def make_layouts(scheme):
    dims, splits = SCHEMES[scheme]
    devices = [f"CPU:{number}" for number in range(np.prod([size for _name, size in dims]))]
    mesh = dtensor.create_mesh(dims, devices=devices)
    return {
        name: dtensor.Layout([splits.get(axis, WHOLE) for axis in axes], mesh) for name, axes in AXES.items()
    }


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


class MLP(tf.Module):
    def __init__(self, seed, layouts, sizes):
        super().__init__()
        random = np.random.default_rng(seed)
        for name, axes in WEIGHTS.items():
            shape = [sizes[axis] for axis in axes]
            deviation = np.sqrt(2 / shape[0]) if len(shape) == 2 else 0  # biases begin with 0
            value = random.normal(0, deviation, shape).astype("float32")
            setattr(self, name, dtensor.DVariable(distribute(value, layouts[name])))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5) @ self.W2 + self.b2


@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x)))
    weights = [getattr(model, name) for name in WEIGHTS]
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(learning_rate * gradient)
    return loss / x.shape[0]


parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--scheme", choices=SCHEMES, default="data")
arguments = parser.parse_args()

random = np.random.default_rng(1)
x = random.normal(size=(1024, 1200)).astype("float32") / 35
y = (x[:, :100].sum(axis=1) > 0).astype("int64")
layouts, step = make_layouts(arguments.scheme), tf.Variable(0, dtype=tf.int64)
model = MLP(0, layouts, {"features": 1200, "hidden": 48, "classes": 2})
manager = tf.train.CheckpointManager(
    tf.train.Checkpoint(model=model, step=step), arguments.folder, max_to_keep=3
)
manager.restore_or_initialize()
for first in range(0, 640, 64):
    batch = slice(first, first + 64)
    loss = train_step(model, distribute(x[batch], layouts["x"]), distribute(y[batch], layouts["y"]), 1e-2)
    print(f"step {int(step.assign_add(1))}: loss {float(loss):.4f}")
manager.save()
