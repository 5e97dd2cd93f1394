"""ZeRO-1 or FSDP, with all that large trainings need: python zero_and_fsdp.py [--shard WHAT].

WHAT is none, optimizer (ZeRO-1) or variables (FSDP); without it, all three run in turn. Each of twenty steps
adds up the gradients of four micro-batches on each device alone, clips them by their global norm, and takes
its products in bfloat16. Every loss and every norm is compared with that of one device.
"""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

WHOLE = dtensor.UNSHARDED
BATCH, MICRO_BATCHES, STEPS = 256, 4, 20
CLIP = 0.25

# 5,120 examples; 200 of 1,200 numbers tell the label
rng = np.random.default_rng(1)
train_y = rng.integers(0, 2, STEPS * BATCH)
features = rng.normal(size=(STEPS * BATCH, 1200))
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


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


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


def relayout(tensor, layout):
    if layout is None:
        return tensor
    return dtensor.relayout(tensor, layout)


def split_over_batch(entries, shape, devices):
    entries = list(entries)
    for axis, entry in enumerate(entries):
        if entry == WHOLE and shape[axis] % devices == 0:
            entries[axis] = "batch"
            return entries
    return entries


class Layouts:
    """Those of one scheme on `devices` devices; on one device there are none."""

    def __init__(self, what, devices):
        self.devices = devices  # how many micro-batch parts, each with its own sum
        self.whole, self.variables, self.slots, self.sums = {}, {}, {}, {}
        if devices == 1:
            return
        mesh = dtensor.create_mesh([("batch", devices)], device_type="CPU")
        for name, value in values.items():
            entries = [WHOLE] * value.ndim
            parts = split_over_batch(entries, value.shape, devices)
            self.whole[name] = dtensor.Layout(entries, mesh)
            self.sums[name] = dtensor.Layout(["batch", *entries], mesh)
            split = dtensor.Layout(parts, mesh)
            self.slots[name] = self.whole[name] if what == "none" else split
            self.variables[name] = split if what == "variables" else self.whole[name]
        self.sums["x"] = dtensor.Layout(["batch", WHOLE, WHOLE], mesh)
        self.sums["y"] = dtensor.Layout(["batch", WHOLE], mesh)


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights, self.means, self.squares, self.sums = {}, {}, {}, {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            self.weights[name] = variable(value, layouts.variables.get(name))
            self.means[name] = variable(zeros, layouts.slots.get(name))
            self.squares[name] = variable(zeros, layouts.slots.get(name))
            sums = np.zeros([layouts.devices, *value.shape], "float32")
            self.sums[name] = variable(sums, layouts.sums.get(name))


def losses_of(copies, x, y):
    """Losses of rows that are dealt out along a first axis, each part with its own copy of the weights."""
    half = {}
    for name, copy in copies.items():
        half[name] = tf.cast(copy, tf.bfloat16)
    x = tf.cast(x, tf.bfloat16)
    hidden = tf.nn.relu(x @ half["W1"] + tf.expand_dims(half["b1"], 1))
    logits = hidden @ half["W2"] + tf.expand_dims(half["b2"], 1)
    logits = tf.cast(logits, tf.float32)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)


def make_functions(model, layouts):
    @tf.function
    def add(x, y):
        copies = {}
        for name, weight in model.weights.items():
            # FSDP gathers the weight here
            whole = relayout(weight, layouts.whole.get(name))
            shape = [layouts.devices, *weight.shape]
            copy = tf.broadcast_to(whole, shape)
            copies[name] = relayout(copy, layouts.sums.get(name))
        with tf.GradientTape() as tape:
            tape.watch(copies)
            loss = tf.reduce_sum(losses_of(copies, x, y)) / BATCH
        # A copy lies on one device, and so does its gradient
        sums = {}
        for name, gradient in tape.gradient(loss, copies).items():
            sums[name] = model.sums[name] + gradient
        for name, total in sums.items():
            model.sums[name].assign(total)
        return loss

    @tf.function
    def update(step, learning_rate):
        gradients = {}
        for name, total in model.sums.items():
            gradient = tf.reduce_sum(total, axis=0)  # among the devices
            layout = layouts.slots.get(name)
            gradients[name] = relayout(gradient, layout)  # ZeRO: its part
        clipped, norm = tf.clip_by_global_norm(list(gradients.values()), CLIP)

        # First compute everything, then write it
        updates = {}
        for name, gradient in zip(gradients, clipped, strict=True):
            weight = relayout(model.weights[name], layouts.slots.get(name))
            mean, square = model.means[name], model.squares[name]
            weight, mean, square = adam(weight, mean, square, gradient, step, learning_rate)
            # ZeRO-1 gathers the weight here
            weight = relayout(weight, layouts.variables.get(name))
            updates[name] = weight, mean, square

        for name, (weight, mean, square) in updates.items():
            model.weights[name].assign(weight)
            model.means[name].assign(mean)
            model.squares[name].assign(square)
            model.sums[name].assign(tf.zeros_like(model.sums[name]))
        return norm

    return add, update


def train(what, devices):
    layouts = Layouts(what, devices)
    model = Model(layouts)
    add, update = make_functions(model, layouts)
    rate = np.float32(3e-3)
    for step in range(STEPS):
        loss = 0.0
        rows = np.arange(step * BATCH, (step + 1) * BATCH)
        for micro in np.split(rows, MICRO_BATCHES):
            dealt = micro.reshape(devices, -1)
            x = place(train_x[dealt], layouts.sums.get("x"))
            y = place(train_y[dealt], layouts.sums.get("y"))
            loss += float(add(x, y))
        norm = update(np.float32(step + 1), rate)
        yield loss, float(norm), model


def bytes_on_device_0(variables):
    held = 0
    for each in variables.values():
        held += dtensor.unpack(each.read_value())[0].numpy().nbytes
    return held


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shard", choices=["none", "optimizer", "variables"])
    chosen, _rest = parser.parse_known_args()

    one = list(train("none", 1))
    for what in [chosen.shard] if chosen.shard else ["none", "optimizer", "variables"]:
        apart = 0
        for ours, theirs in zip(train(what, 8), one, strict=True):
            apart = max(apart, abs(ours[0] - theirs[0]), abs(ours[1] - theirs[1]))
        loss, norm, model = ours
        weights = bytes_on_device_0(model.weights)
        slots = bytes_on_device_0(model.means) + bytes_on_device_0(model.squares)
        print(f"{what}: loss {loss:.4f}, norm {norm:.2f}, apart {apart:.0e};", end=" ")
        sums = bytes_on_device_0(model.sums)
        print(f"device 0 holds {weights:,} bytes of weights, {slots:,} of averages, {sums:,} of gradients")
        assert apart < 5e-3
