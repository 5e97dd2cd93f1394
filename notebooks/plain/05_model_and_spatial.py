"""One model under three sets of layouts; each goes on from a checkpoint of any other.

Run it: python 05_model_and_spatial.py FOLDER --scheme data|model|spatial|one
Run it again with the same folder and another scheme: training goes on from the last checkpoint.
"""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

WHOLE = dtensor.UNSHARDED
AXES = {  # the axes of each tensor, by name: tensors that share an axis share what splits it
    "x": ("batch", "features"),
    "y": ("batch",),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
    "mean": ("hidden",),
    "variance": ("hidden",),
}
SCHEMES = {  # the mesh, and which of its dimensions splits which axis
    "data": ([("batch", 8)], {"batch": "batch"}),
    "model": ([("batch", 4), ("model", 2)], {"batch": "batch", "hidden": "model"}),
    "spatial": (
        [("batch", 2), ("feature", 2), ("model", 2)],
        {"batch": "batch", "features": "feature", "hidden": "model"},
    ),
}


def make_layouts(scheme):
    if scheme == "one":  # one device, ordinary tensors
        return dict.fromkeys(AXES)
    dims, splits = SCHEMES[scheme]
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    return {name: dtensor.Layout([splits.get(axis, WHOLE) for axis in axes], mesh) for name, axes in AXES.items()}


def distribute(array, layout):
    """Sends each device its part of an array; without a layout there is one device, and it gets all."""
    if layout is None:
        return tf.constant(array)
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


class MLP(tf.Module):
    def __init__(self, seed, layouts, features=1200, hidden=48, classes=2):
        super().__init__()
        random = np.random.default_rng(seed)
        values = {
            "W1": random.normal(0, np.sqrt(2 / features), (features, hidden)),
            "b1": np.zeros(hidden),
            "W2": random.normal(0, np.sqrt(2 / hidden), (hidden, classes)),
            "b2": np.zeros(classes),
            "mean": np.zeros(hidden),
            "variance": np.ones(hidden),
        }
        for name, value in values.items():
            tensor = distribute(value.astype("float32"), layouts[name])
            make = tf.Variable if layouts[name] is None else dtensor.DVariable
            setattr(self, name, make(tensor))

    def hidden(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1)

    def logits(self, hidden, mean, variance):
        return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5) @ self.W2 + self.b2


@tf.function
def train_step(model, x, y, learning_rate):
    weights = [model.W1, model.b1, model.W2, model.b2]
    with tf.GradientTape() as tape:
        hidden = model.hidden(x)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        logits = model.logits(hidden, mean, variance)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    model.mean.assign(0.9 * model.mean + 0.1 * mean)
    model.variance.assign(0.9 * model.variance + 0.1 * variance)
    return loss / x.shape[0]


def main(folder, scheme):
    random = np.random.default_rng(1)
    x = random.normal(size=(1000, 1200)).astype("float32") / 35
    y = (x[:, :100].sum(axis=1) > 0).astype("int64")
    layouts = make_layouts(scheme)
    model, step = MLP(0, layouts), tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, step=step), folder, max_to_keep=3)
    manager.restore_or_initialize()
    for _ in range(10):
        rows = np.arange(int(step) * 64, int(step) * 64 + 64) % 1000
        loss = train_step(model, distribute(x[rows], layouts["x"]), distribute(y[rows], layouts["y"]), 1e-2)
        step.assign_add(1)
        print(f"step {int(step)}: {float(loss):.4f}")
    manager.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--scheme", choices=[*SCHEMES, "one"], default="data")
    arguments = parser.parse_args()
    main(arguments.folder, arguments.scheme)
