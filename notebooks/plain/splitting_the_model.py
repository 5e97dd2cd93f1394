"""One model, three schemes, one checkpoint: python splitting_the_model.py [FOLDER [SCHEME ...]]."""

import os
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
AXES = {"W1": ("features", "hidden"), "b1": ("hidden",), "W2": ("hidden", "classes"), "b2": ("classes",)}
AXES |= {"x": ("batch", "features"), "y": ("batch",)}
SPLITS = {"batch": "batch", "features": "feature", "hidden": "model"}  # an axis, and what splits it
MESHES = {"data": [("batch", 8)], "model": [("batch", 4), ("model", 2)]}
MESHES["spatial"] = [("batch", 2), ("feature", 2), ("model", 2)]


def make_layouts(dims):
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    entry = {axis: dim for axis, dim in SPLITS.items() if dim in mesh.dim_names}
    specs = {name: [entry.get(axis, dtensor.UNSHARDED) for axis in axes] for name, axes in AXES.items()}
    return {name: dtensor.Layout(spec, mesh) for name, spec in specs.items()}


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = np.split(part, layout.num_shards(axis), axis)[at[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


class MLP(tf.Module):
    def __init__(self, values, layouts):
        super().__init__()
        for name, value in values.items():
            kind = tf.Variable if layouts[name] is None else dtensor.DVariable
            setattr(self, name, kind(place(value, layouts[name])))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.moments(hidden, axes=[0])  # of the whole batch, wherever its rows lie
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2


@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    weights = model.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # all gradients are there
        weight.assign_sub(learning_rate * gradient)
    return loss / x.shape[0], tf.reduce_mean(tf.cast(tf.argmax(logits, axis=1) == y, tf.float32))


def train(layouts, folder, steps, batch_size=64, learning_rate=1e-2):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=MLP(values, layouts), step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    if manager.latest_checkpoint:  # whatever layouts it was written under
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
    steps_per_epoch = len(train_y) // batch_size
    try:
        for _ in range(steps):
            epoch, at = divmod(int(step), steps_per_epoch)
            rows = slice(at * batch_size, (at + 1) * batch_size)
            x, y = place(train_x[rows], layouts["x"]), place(train_y[rows], layouts["y"])
            loss, accuracy = train_step(checkpoint.model, x, y, learning_rate)
            counted = {"step": int(step.assign_add(1)), "epoch": epoch + 1}
            if at + 1 == steps_per_epoch:
                manager.save()
            yield {**counted, "loss": float(loss), "accuracy": float(accuracy)}
    except GeneratorExit:  # closed at a yield, where step and model agree
        pass
    manager.save()


LAYOUTS = {scheme: make_layouts(dims) for scheme, dims in MESHES.items()}
LAYOUTS["one"] = dict.fromkeys(AXES)  # no layouts: ordinary tensors and variables on one device
draw = np.random.default_rng(0).normal
values = {"W1": draw(0, np.sqrt(2 / 1200), (1200, 48)), "b1": np.zeros(48)}
values |= {"W2": draw(0, np.sqrt(2 / 48), (48, 2)), "b2": np.zeros(2)}
values = {name: value.astype("float32") for name, value in values.items()}
train_x = np.random.default_rng(1).normal(size=(1024, 1200)).astype("float32") / 35
train_y = (train_x[:, :100].sum(axis=1) > 0).astype("int64")
if __name__ == "__main__":
    folder, *schemes = sys.argv[1:] or [tempfile.mkdtemp()]
    os.makedirs(folder, exist_ok=True)
    for scheme in schemes or MESHES:
        copy = shutil.copytree(folder, tempfile.mkdtemp(), dirs_exist_ok=True)
        one_device = list(train(LAYOUTS["one"], copy, 10))
        for ours, theirs in zip(train(LAYOUTS[scheme], folder, 10), one_device, strict=True):
            print(f"{scheme}, step {ours['step']}: {ours['loss']:.4f}, one device {theirs['loss']:.4f}")
            assert abs(ours["loss"] - theirs["loss"]) < 1e-3
