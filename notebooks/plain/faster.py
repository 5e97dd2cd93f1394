"""Train on eight devices, 32 steps a call, from files never read whole: python faster.py [FOLDER]."""

import os
import sys
import tempfile
import time

# Two operations at a time, each in one thread: eight devices share few cores
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

BATCH_SIZE = 64
STEPS_IN_A_CALL = 32
LEARNING_RATE = np.float32(3e-3)
RECORD_BYTES = 4 * 1201

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}


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


@tf.function
def train_step(model, x, y, step, learning_rate):
    batch_size = x.shape[0]
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        # A sum, like the gradients: so they share one all-reduce
        loss = tf.reduce_sum(losses) / batch_size
    gradients = tape.gradient(loss, model.weights)
    update(model, gradients, step, learning_rate)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_sum(hits) / batch_size


@tf.function
def train_steps(model, xs, ys, first_step, learning_rate):
    count = xs.shape[0]
    losses = tf.zeros(count)
    accuracies = tf.zeros(count)
    for i in tf.range(count):
        x = tf.gather(xs, i)
        y = tf.gather(ys, i)
        step = first_step + tf.cast(i, tf.float32)
        loss, accuracy = train_step(model, x, y, step, learning_rate)
        # Zeros, with a one at place i
        here = tf.one_hot(i, count)
        losses += loss * here
        accuracies += accuracy * here
    return losses, accuracies


WHOLE = dtensor.UNSHARDED

specs = {
    "x": ["batch", WHOLE],
    "y": ["batch"],
    "W1": [WHOLE, WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
}


def layouts_on(mesh, specs):
    layouts = {}
    for name, spec in specs.items():
        layouts[name] = dtensor.Layout(spec, mesh)
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


def place_stacked(arrays, layout):
    if layout is None:
        return tf.constant(arrays)
    stacked = [WHOLE, *layout.sharding_specs]
    return shard(arrays, dtensor.Layout(stacked, layout.mesh))


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


def write_files(features, labels, folder, rows_in_a_file):
    files = []
    for start in range(0, len(labels), rows_in_a_file):
        rows = slice(start, start + rows_in_a_file)
        # A record: the label, then the features of a review
        records = np.column_stack([labels[rows], features[rows]])
        file = f"{folder}/reviews-{len(files)}.bin"
        records.astype("float32").tofile(file)
        files.append(file)
    return files


def decode(records):
    numbers = tf.io.decode_raw(records, tf.float32)
    return numbers[:, 1:], tf.cast(numbers[:, 0], tf.int64)


def stacks_of(files, buffer_size):
    dataset = tf.data.FixedLengthRecordDataset(files, RECORD_BYTES)
    dataset = dataset.shuffle(buffer_size, seed=0)
    dataset = dataset.batch(BATCH_SIZE, drop_remainder=True)
    dataset = dataset.map(decode)
    dataset = dataset.batch(STEPS_IN_A_CALL, drop_remainder=True)
    return dataset.prefetch(2)


def read(results):
    losses, accuracies = results
    return losses.numpy(), accuracies.numpy()


def train(model, layouts, stacks):
    """Yields the losses and the accuracies of each call, before the next call begins."""
    first_step = 1
    pending = None
    for features, labels in stacks.as_numpy_iterator():
        # The devices may still be busy with the pending call
        xs = place_stacked(features, layouts["x"])
        ys = place_stacked(labels, layouts["y"])
        if pending is not None:
            yield read(pending)
        step = np.float32(first_step)
        pending = train_steps(model, xs, ys, step, LEARNING_RATE)
        first_step += STEPS_IN_A_CALL
    if pending is not None:
        yield read(pending)


def made_up_reviews(count):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, count)
    features = rng.normal(size=(count, 1200))
    # 200 of the 1,200 numbers tell the label
    features[:, :200] += 0.12 * (2 * labels[:, np.newaxis] - 1)
    return (features / 35).astype("float32"), labels


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    files = write_files(*made_up_reviews(16_384), folder, 4096)
    mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
    losses = {}
    for name, layouts in ("one", dict.fromkeys(specs)), ("eight", layouts_on(mesh, specs)):
        calls = train(Model(layouts), layouts, stacks_of(files, 1024))
        losses[name] = list(next(calls)[0])
        # The first call was compiled. From the second on, time counts
        start = time.perf_counter()
        for call_losses, _ in calls:
            losses[name].extend(call_losses)
        seconds = time.perf_counter() - start
        steps = len(losses[name])
        speed = (steps - STEPS_IN_A_CALL) / seconds
        print(f"{name:5} {steps} steps, last loss {losses[name][-1]:.3f}, {speed:,.0f} steps a second")
    apart = np.abs(np.subtract(losses["eight"], losses["one"])).max()
    print(f"The losses of one device and of eight are at most {apart:.0e} apart.")
    assert apart < 1e-4
