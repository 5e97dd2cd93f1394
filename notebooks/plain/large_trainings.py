"""What large training runs add to a step, all at once: python large_trainings.py [row|grid ...].

Gradients are accumulated over four micro-batches, exchanged once, and clipped. Products are in bfloat16,
units are dropped, and the learning rate follows a schedule. The row is 8 devices, and the grid 4 x 2.
"""

import os
import sys

# With oneDNN, products in bfloat16 end the process where it may not use AVX-512
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

WHOLE = dtensor.UNSHARDED
MICRO_BATCHES = 4
LIMIT = 0.2

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
copy_axes = {
    "x": ("copy", "rows", "features"),
    "y": ("copy", "rows"),
    "W1": ("copy", "features", "hidden"),
    "b1": ("copy", "one", "hidden"),
    "W2": ("copy", "hidden", "classes"),
    "b2": ("copy", "one", "classes"),
    "losses": ("copy",),
}
splits = {"batch": "batch", "hidden": "model", "copy": "batch"}
one_copy = {
    "W1": (1, 1200, 48),
    "b1": (1, 1, 48),
    "W2": (1, 48, 2),
    "b2": (1, 1, 2),
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
            layout = layouts.get(name)
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


class Accumulating(Model):
    def __init__(self, layouts, copy_count, copy_layouts):
        super().__init__(layouts)
        self.copy_count = copy_count
        self.copy_layouts = copy_layouts
        self.sums = {}
        for name, shape in one_copy.items():
            zeros = np.zeros((copy_count, *shape[1:]), "float32")
            layout = copy_layouts.get(name)
            self.sums[name] = variable(zeros, layout)
        zeros = np.zeros(copy_count, "float32")
        self.losses = variable(zeros, copy_layouts.get("losses"))


class Recipe(Accumulating):
    def __init__(self, layouts, copy_count, copy_layouts, mesh, dtype):
        super().__init__(layouts, copy_count, copy_layouts)
        self.mesh = mesh
        self.dtype = dtype


def copies_of(model):
    copies = {}
    for name, weight in model.weights.items():
        copy = tf.reshape(weight, one_copy[name])
        stacked = tf.tile(copy, [model.copy_count, 1, 1])
        if model.copy_layouts:  # on a mesh
            layout = model.copy_layouts[name]
            stacked = dtensor.relayout(stacked, layout)
        copies[name] = stacked
    return copies


def gradients_of_copies(forward, copies, x, y):
    with tf.GradientTape() as tape:
        tape.watch(copies)
        logits = forward(copies, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses, axis=1)  # one per copy
    return loss, tape.gradient(loss, copies)  # of their sum: a copy enters one loss alone


def cast_all(weights, dtype):
    cast = {}
    for name, weight in weights.items():
        cast[name] = tf.cast(weight, dtype)
    return cast


def drop(hidden, seed, mesh):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    if mesh is not None:
        whole = dtensor.Layout.replicated(mesh, len(hidden.shape))
        random = dtensor.relayout(random, whole)
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


def recipe_logits(model, weights, x, seed):
    weights = cast_all(weights, model.dtype)
    x = tf.cast(x, model.dtype)
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    hidden = drop(hidden, seed, model.mesh)
    logits = hidden @ weights["W2"] + weights["b2"]
    return tf.cast(logits, tf.float32)


@tf.function
def recipe_micro_batch(model, x, y, seed):
    def forward(weights, x):
        return recipe_logits(model, weights, x, seed)

    copies = copies_of(model)
    loss, gradients = gradients_of_copies(forward, copies, x, y)
    for name, gradient in gradients.items():
        model.sums[name].assign_add(gradient)
    model.losses.assign_add(loss)


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


def update(model, gradients, step, learning_rate):
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


def mean_gradients(model):
    gradients = {}
    for name, weight in model.weights.items():
        mean = tf.reduce_mean(model.sums[name], axis=0)
        mean = tf.reshape(mean, weight.shape)
        gradients[name] = mean / MICRO_BATCHES
    return gradients


def clip(gradients, limit):
    clipped, _ = tf.clip_by_global_norm(list(gradients.values()), limit)
    return dict(zip(gradients, clipped))


def reset(model):
    for total in [*model.sums.values(), model.losses]:
        total.assign(tf.zeros_like(total))


@tf.function
def recipe_finish(model, step, learning_rate):
    gradients = mean_gradients(model)
    gradients = clip(gradients, LIMIT)
    loss = tf.reduce_mean(model.losses) / MICRO_BATCHES
    update(model, gradients, step, learning_rate)
    reset(model)
    return loss


def micro_batch(first, model):
    x = train_x[first : first + 16]
    x = x.reshape(model.copy_count, -1, 1200)
    y = train_y[first : first + 16]
    y = y.reshape(model.copy_count, -1)
    x = place(x, model.copy_layouts.get("x"))
    y = place(y, model.copy_layouts.get("y"))
    return x, y


def rate_of(step, steps):
    warm_up = min(1, (step + 1) / 10)
    return np.float32(3e-3 * warm_up * (1 - step / steps))


def train(model, steps):
    losses = []
    seed_layout = None
    if model.mesh is not None:
        seed_layout = dtensor.Layout.replicated(model.mesh, 1)
    for step in range(steps):
        for part in range(MICRO_BATCHES):
            x, y = micro_batch(64 * step + 16 * part, model)
            seed = np.array([step, part], "int32")
            recipe_micro_batch(model, x, y, place(seed, seed_layout))
        number = np.float32(step + 1)
        rate = rate_of(step, steps)
        losses.append(float(recipe_finish(model, number, rate)))
    return losses


def made_on(name, dtype):
    if name == "one":
        return Recipe({}, 1, {}, None, dtype)
    mesh = MESHES[name]
    layouts = make_layouts(axes, splits, mesh)
    copy_layouts = make_layouts(copy_axes, splits, mesh)
    return Recipe(layouts, mesh.dim_size("batch"), copy_layouts, mesh, dtype)


MESHES = {
    "row": dtensor.create_mesh([("batch", 8)], device_type="CPU"),
    "grid": dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU"),
}
FURTHEST = {tf.float32: 1e-5, tf.bfloat16: 2e-3}  # how far a loss may be from that of one device

if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name in MESHES] or ["row", "grid"]
    for dtype, furthest in FURTHEST.items():
        one = train(made_on("one", dtype), 20)
        for name in names:
            losses = train(made_on(name, dtype), 20)
            apart = np.abs(np.subtract(losses, one)).max()
            print(f"{name}, {dtype.name}: loss {losses[-1]:.4f}, at most {apart:.0e} apart")
            assert apart < furthest
