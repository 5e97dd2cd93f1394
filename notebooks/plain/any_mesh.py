"""A run that moves from mesh to mesh: python any_mesh.py [FOLDER [SCHEME ...]].

Each scheme that is named, such as model, goes on from the newest checkpoint in the folder, for ten steps.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

WHOLE = dtensor.UNSHARDED

# 1,280 examples; 200 of 1,200 numbers tell the label
rng = np.random.default_rng(1)
train_y = rng.integers(0, 2, 1280)
features = rng.normal(size=(1280, 1200))
features[:, :200] += 0.12 * (2 * train_y[:, np.newaxis] - 1)
train_x = (features / 35).astype("float32")

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

axes = {
    "x": ("batch", "features"),
    "y": ("batch",),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
}
splits = {"batch": "batch", "features": "feature", "hidden": "model"}
meshes = {
    "data": [("batch", 8)],
    "model": [("batch", 4), ("model", 2)],
    "spatial": [("batch", 2), ("feature", 2), ("model", 2)],
}


def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entry = splits.get(name, WHOLE)
            if entry not in mesh.dim_names:
                entry = WHOLE
            entries.append(entry)
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


@tf.function
def train_step(model, x, y, step, learning_rate):
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
        updates[name] = adam(weight, mean, square, gradient, step, learning_rate)

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


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
            layout = layouts[name]
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


def newest(folder):
    numbers = []
    for index in Path(folder).glob("ckpt-*.index"):
        numbers.append(int(index.stem.removeprefix("ckpt-")))
    for number in sorted(numbers, reverse=True):
        path = f"{folder}/ckpt-{number}"
        try:
            tf.train.list_variables(path)
            return path
        except tf.errors.OpError:
            pass  # it is not whole: try the one before it
    return None


def resume(checkpoint, folder):
    path = newest(folder)
    if path is None:
        return
    stored = dict(tf.train.list_variables(path))
    for name, weight in checkpoint.model.weights.items():
        key = f"model/weights/{name}/.ATTRIBUTES/VARIABLE_VALUE"
        shape = stored.get(key)
        if shape is None:
            raise ValueError(f"{name} is missing in {path}")
        if shape != list(weight.shape):
            raise ValueError(f"{name} has shape {shape} in {path}")
    status = checkpoint.restore(path)
    status.assert_existing_objects_matched()


def train(layouts, folder, steps, batch_size=64, learning_rate=3e-3):
    model = Model(layouts)
    done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=done)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    resume(checkpoint, folder)

    steps_per_epoch = len(train_y) // batch_size
    rate = np.float32(learning_rate)
    try:
        for step in range(int(done), int(done) + steps):
            epoch, batch = divmod(step, steps_per_epoch)
            rows = slice(batch * batch_size, (batch + 1) * batch_size)
            x = place(train_x[rows], layouts["x"])
            y = place(train_y[rows], layouts["y"])
            number = np.float32(step + 1)
            loss, accuracy = train_step(model, x, y, number, rate)
            done.assign(step + 1)
            if batch + 1 == steps_per_epoch:
                manager.save()
            yield {
                "step": step + 1,
                "epoch": epoch + 1,
                "loss": float(loss),
                "accuracy": float(accuracy),
            }
    except GeneratorExit:
        pass  # the Stop button, between two steps
    manager.save()


LAYOUTS = {"one": dict.fromkeys(axes)}  # one device: no layouts
for name, dims in meshes.items():
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    LAYOUTS[name] = make_layouts(axes, splits, mesh)

if __name__ == "__main__":
    folder, *names = sys.argv[1:] or [tempfile.mkdtemp()]
    os.makedirs(folder, exist_ok=True)
    # The same steps on one device, from a copy of what is in the folder
    copy = shutil.copytree(folder, tempfile.mkdtemp(), dirs_exist_ok=True)
    for name in names or meshes:
        one = train(LAYOUTS["one"], copy, 10)
        for ours, theirs in zip(train(LAYOUTS[name], folder, 10), one, strict=True):
            apart = abs(ours["loss"] - theirs["loss"])
            print(f"{name}, step {ours['step']}: loss {ours['loss']:.4f}, apart {apart:.0e}")
            assert apart < 1e-5
