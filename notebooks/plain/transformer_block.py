"""A block under three plans: python transformer_block.py [FOLDER].

Each plan takes twenty steps from the newest checkpoint in the folder,
and every loss is compared with that of one device.
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

sizes = {
    "b": 32,  # texts in a batch
    "s": 10,  # tokens in a text
    "t": 10,  # the tokens again, as those that are attended to
    "v": 12,  # different tokens: the vocabulary
    "d": 32,  # features
    "h": 4,  # heads
    "k": 8,  # size of a head
    "f": 128,  # hidden units
}
splits = {"b": "batch", "h": "model", "f": "model"}

axes = {
    "tokens": "bs",
    "targets": "bs",
    "embedding": "vd",
    "position": "sd",
    "gain_1": "d",
    "query": "dhk",
    "key": "dhk",
    "value": "dhk",
    "out": "hkd",
    "gain_2": "d",
    "up": "df",
    "up_bias": "f",
    "down": "fd",
    "unembedding": "dv",
}

rng = np.random.default_rng(0)
values = {}
for name, letters in axes.items():
    shape = [sizes[axis] for axis in letters]
    if name in ["gain_1", "gain_2"]:
        values[name] = np.ones(shape, "float32")
    elif name not in ["tokens", "targets"]:
        values[name] = rng.normal(0, 0.15, shape).astype("float32")


def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entries.append(splits.get(name, WHOLE))
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


def attend(x, query, key, value):
    queries = tf.einsum("bsd,dhk->bhsk", x, query)
    keys = tf.einsum("btd,dhk->bhtk", x, key)
    values = tf.einsum("btd,dhk->bhtk", x, value)
    scores = tf.einsum("bhsk,bhtk->bhst", queries, keys)
    scores = scores / query.shape[-1] ** 0.5
    weights = tf.nn.softmax(scores, axis=-1)
    return tf.einsum("bhst,bhtk->bhsk", weights, values)


def rms_norm(x, gain):
    squares = tf.reduce_mean(x * x, axis=-1, keepdims=True)
    return gain * x * tf.math.rsqrt(squares + 1e-6)


def block(weights, x):
    # Attention
    normed = rms_norm(x, weights["gain_1"])
    query, key = weights["query"], weights["key"]
    received = attend(normed, query, key, weights["value"])
    x = x + tf.einsum("bhsk,hkd->bsd", received, weights["out"])

    # Feed-forward network
    normed = rms_norm(x, weights["gain_2"])
    hidden = tf.einsum("bsd,df->bsf", normed, weights["up"])
    hidden = tf.nn.gelu(hidden + weights["up_bias"])
    return x + tf.einsum("bsf,fd->bsd", hidden, weights["down"])


def logits_of(weights, tokens):
    # A token's row of the embedding, written as a product
    embedding = weights["embedding"]
    one_hot = tf.one_hot(tokens, embedding.shape[0])
    x = tf.einsum("bsv,vd->bsd", one_hot, embedding)
    x = x + weights["position"]
    x = block(weights, x)
    return tf.einsum("bsd,dv->bsv", x, weights["unembedding"])


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        for name, value in values.items():
            self.weights[name] = variable(value, layouts.get(name))


@tf.function
def train_step(forward, model, tokens, targets, learning_rate):
    with tf.GradientTape() as tape:
        logits = forward(model.weights, tokens)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            targets,
            logits,
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)
    for name, gradient in gradients.items():
        model.weights[name].assign_sub(learning_rate * gradient)
    return loss


def texts(step):
    rng = np.random.default_rng(step)
    tokens = rng.integers(0, 12, (32, 10)).astype("int32")
    return tokens, np.roll(tokens, 1, axis=1)


def split_over_batch(entries, shape, devices):
    entries = list(entries)
    for axis, entry in enumerate(entries):
        if entry == WHOLE and shape[axis] % devices == 0:
            entries[axis] = "batch"
            return entries
    return entries


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


def train(forward, layouts, folder, steps):
    model = Model(layouts)
    done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=done)
    manager = tf.train.CheckpointManager(
        checkpoint,
        folder,
        max_to_keep=3,
    )
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()

    losses = []
    for step in range(int(done), int(done) + steps):
        tokens, targets = texts(step)
        tokens = place(tokens, layouts.get("tokens"))
        targets = place(targets, layouts.get("targets"))
        rate = np.float32(0.3)
        loss = train_step(forward, model, tokens, targets, rate)
        losses.append(float(loss))
        done.assign(step + 1)
    manager.save()
    return losses


mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)],
    device_type="CPU",
)
tall_mesh = dtensor.create_mesh(
    [("batch", 2), ("model", 4)],
    device_type="CPU",
)
layouts = make_layouts(axes, splits, mesh)
tall = make_layouts(axes, splits, tall_mesh)

# With FSDP, `batch` splits each weight that has an axis left for it
fsdp_layouts = dict(layouts)
for name, value in values.items():
    entries = layouts[name].sharding_specs
    entries = split_over_batch(entries, value.shape, 4)
    fsdp_layouts[name] = dtensor.Layout(entries, mesh)


def fsdp_logits(weights, tokens):
    gathered = {}
    for name, weight in weights.items():
        gathered[name] = dtensor.relayout(weight, layouts[name])
    return logits_of(gathered, tokens)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    # The same steps on one device, from a copy of what is in the folder
    copy = tempfile.mkdtemp()
    shutil.copytree(folder, copy, dirs_exist_ok=True)

    for title, forward, plan in [
        ("4 x 2", logits_of, layouts),
        ("2 x 4", logits_of, tall),
        ("4 x 2 with FSDP", fsdp_logits, fsdp_layouts),
    ]:
        losses = train(forward, plan, folder, 20)
        one_device = train(logits_of, {}, copy, 20)
        differences = np.abs(np.array(losses) - np.array(one_device))
        apart = max(differences)
        print(f"{title}: loss {losses[-1]:.3f}, apart {apart:.0e}")
        assert apart < 1e-4
