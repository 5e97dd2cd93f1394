"""A transformer block on 4 x 2, and on from its checkpoint on 2 x 4: python transformer_block.py [FOLDER]."""

import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
SIZES = {"batch": 32, "sequence": 8, "vocabulary": 12, "features": 32, "heads": 4, "size": 8, "hidden": 64}
VARIABLES = {"embedding": ("vocabulary", "features"), "position": ("sequence", "features")}
VARIABLES |= dict.fromkeys(["query", "key", "value"], ("features", "heads", "size"))
VARIABLES |= {"out": ("heads", "size", "features"), "gain_1": ("features",), "gain_2": ("features",)}
VARIABLES |= {"up": ("features", "hidden"), "up_bias": ("hidden",), "down": ("hidden", "features")}
VARIABLES |= {"head": ("features", "vocabulary")}
SPLITS = {"batch": "batch", "heads": "model", "hidden": "model"}  # an axis, and what splits it


def place(array, axes, mesh):
    if mesh is None:  # one device
        return tf.constant(array)
    layout = dtensor.Layout([SPLITS.get(axis, dtensor.UNSHARDED) for axis in axes], mesh)
    components = []
    for at in mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = tf.split(part, layout.num_shards(axis), axis)[at[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


def normalised(x, gain):
    return gain * x * tf.math.rsqrt(tf.reduce_mean(x * x, axis=-1, keepdims=True) + 1e-6)


class Block(tf.Module):
    def __init__(self, values, mesh):
        super().__init__()
        kind = tf.Variable if mesh is None else dtensor.DVariable
        for name, axes in VARIABLES.items():
            setattr(self, name, kind(place(values[name], axes, mesh)))

    def __call__(self, tokens):
        x = tf.einsum("bsv,vd->bsd", tf.one_hot(tokens, SIZES["vocabulary"]), self.embedding) + self.position
        n = normalised(x, self.gain_1)
        q, k, v = (tf.einsum("bsd,dhk->bhsk", n, each) for each in (self.query, self.key, self.value))
        scores = tf.einsum("bhsk,bhtk->bhst", q, k) / SIZES["size"] ** 0.5
        mixed = tf.einsum("bhst,bhtk->bhsk", tf.nn.softmax(scores), v)
        x = x + tf.einsum("bhsk,hkd->bsd", mixed, self.out)  # adds up over the heads
        units = tf.einsum("bsd,df->bsf", normalised(x, self.gain_2), self.up) + self.up_bias
        x = x + tf.einsum("bsf,fd->bsd", tf.nn.relu(units), self.down)  # adds up over the hidden units
        return tf.einsum("bsd,dv->bsv", x, self.head)


@tf.function
def train_step(block, tokens, targets, learning_rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, block(tokens)))
    weights = block.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # all gradients are there
        weight.assign_sub(learning_rate * gradient)
    return loss


def train(dims, folder, steps):
    mesh = dims and dtensor.create_mesh(dims, device_type="CPU")
    checkpoint = tf.train.Checkpoint(block=Block(values, mesh), step=tf.Variable(0, dtype=tf.int64))
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    if newest := manager.latest_checkpoint:
        checkpoint.restore(newest).assert_existing_objects_matched()
    for _ in range(steps):
        tokens = np.random.default_rng(int(checkpoint.step)).integers(0, 12, (32, 8)).astype("int32")
        pair = tokens, np.roll(tokens, 1, axis=1)  # to each place belongs the token before it
        examples = (place(each, ("batch", "sequence"), mesh) for each in pair)
        yield int(checkpoint.step.assign_add(1)), float(train_step(checkpoint.block, *examples, 0.2))
    manager.save()


if __name__ == "__main__":
    shapes = {name: [SIZES[axis] for axis in axes] for name, axes in VARIABLES.items()}
    draw = np.random.default_rng(0).normal
    values = {name: draw(0, 0.2, shape).astype("float32") for name, shape in shapes.items()}
    values |= {name: np.ones(shapes[name], "float32") for name in ("gain_1", "gain_2")}
    folder = (sys.argv[1:] or [tempfile.mkdtemp()])[0]
    for dims in ([("batch", 4), ("model", 2)], [("batch", 2), ("model", 4)]):
        # One device is asked for a step more than it takes: it never comes to save.
        for (step, ours), (_, one) in zip(train(dims, folder, 50), train(None, folder, 51)):
            assert abs(ours - one) < 1e-3, (step, ours, one)
        print(f"{dims}, step {step}: {ours:.3f}, one device {one:.3f}")
