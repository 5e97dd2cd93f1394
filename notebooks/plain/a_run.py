"""A run that survives SIGKILL. Start it with the name of a folder.

Kill it, start it again with the same folder, and it goes on.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

# 7,100 examples to train on, 1,000 are held out.
# 200 of the 1,200 numbers tell the label
rng = np.random.default_rng(1)
labels = rng.integers(0, 2, 8100)
features = rng.normal(size=(8100, 1200))
features[:, :200] += 0.12 * (2 * labels[:, np.newaxis] - 1)
features = (features / 35).astype("float32")
train_x, held_out_x = features[:7100], features[7100:]
train_y, held_out_y = labels[:7100], labels[7100:]

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
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


STEPS_PER_EPOCH = len(train_y) // 64


def rows_of(step):
    epoch = step // STEPS_PER_EPOCH
    rng = np.random.default_rng([0, epoch])
    order = rng.permutation(len(train_y))
    first = 64 * (step % STEPS_PER_EPOCH)
    return order[first : first + 64]


def falling(step, last_step):
    return np.float32(3e-3 * (1 - step / last_step))


def evaluate(model, layouts):
    x = place(held_out_x, layouts["x"])
    y = place(held_out_y, layouts["y"])
    logits = logits_of(model.weights, x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(losses)), float(tf.reduce_mean(hits))


def train(model, layouts, step, last_step, rate_of, order=rows_of):
    while step < last_step:
        done = int(step)
        rows = order(done)
        x = place(train_x[rows], layouts["x"])
        y = place(train_y[rows], layouts["y"])
        step_number = np.float32(done + 1)
        rate = rate_of(done, last_step)
        loss, accuracy = train_step(model, x, y, step_number, rate)
        step.assign_add(1)
        epoch = 1 + done // STEPS_PER_EPOCH
        yield {
            "step": done + 1,
            "epoch": epoch,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }
        ends_epoch = (done + 1) % STEPS_PER_EPOCH == 0
        if ends_epoch or done + 1 == last_step:
            loss, accuracy = evaluate(model, layouts)
            yield {
                "step": done + 1,
                "epoch": epoch,
                "test_loss": loss,
                "test_accuracy": accuracy,
            }


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
            pass  # it is not complete: try the one before it
    return None


def train_and_save(model, layouts, last_step, folder):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()
    try:
        for record in train(model, layouts, step, last_step, falling):
            yield record
            if "test_loss" in record:
                manager.save()
    except GeneratorExit:
        # Stop closes the generator at a yield, between two steps
        manager.save()
        raise


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "run"
    last_step = int(sys.argv[2]) if len(sys.argv) > 2 else 220
    model = Model(layouts)
    for record in train_and_save(model, layouts, last_step, folder):
        if "loss" in record:
            print("step", record["step"], record["loss"], flush=True)
        else:
            print("held out", record["test_loss"], flush=True)
