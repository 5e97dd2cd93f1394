"""Train on eight devices, stop, resume to the bit, evaluate.

Run it: python 04_a_run.py FOLDER
Interrupt it or kill it, run it again with the same folder: it goes on from its last checkpoint.
"""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
X, Y = dtensor.Layout(["batch", WHOLE], mesh), dtensor.Layout(["batch"], mesh)
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def split_rows(array, layout):
    """Sends each device its rows of an array."""
    return dtensor.pack(tf.split(array, 8), layout)


class MLP(tf.Module):
    def __init__(self, seed, features=1200, hidden=48, classes=2):
        super().__init__()
        random = np.random.default_rng(seed)
        W1 = random.normal(0, np.sqrt(2 / features), (features, hidden))
        W2 = random.normal(0, np.sqrt(2 / hidden), (hidden, classes))
        self.W1, self.b1 = variable(W1), variable(np.zeros(hidden))
        self.W2, self.b2 = variable(W2), variable(np.zeros(classes))
        self.mean, self.variance = variable(np.zeros(hidden)), variable(np.ones(hidden))

    def hidden(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1)

    def logits(self, hidden, mean, variance):
        return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5) @ self.W2 + self.b2


def variable(value):
    whole = dtensor.Layout.replicated(mesh, rank=value.ndim)
    return dtensor.DVariable(dtensor.copy_to_mesh(tf.constant(value, tf.float32), whole))


@tf.function
def train_step(model, x, y, learning_rate):
    weights = [model.W1, model.b1, model.W2, model.b2]
    with tf.GradientTape() as tape:
        hidden = model.hidden(x)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        loss = tf.reduce_sum(cross_entropy(y, model.logits(hidden, mean, variance)))
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    model.mean.assign(0.9 * model.mean + 0.1 * mean)  # moving moments, for evaluation
    model.variance.assign(0.9 * model.variance + 0.1 * variance)
    return loss / x.shape[0]


@tf.function
def sums(model, x, y, weight):
    logits = model.logits(model.hidden(x), model.mean, model.variance)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return tf.reduce_sum(weight * cross_entropy(y, logits)), tf.reduce_sum(weight * hits)


def evaluate(model, x, y):
    """Returns the mean loss and the accuracy; every row counts once, whatever their number."""
    rest = -len(y) % 8
    weight = split_rows(np.pad(np.ones(len(y), "float32"), (0, rest)), Y)
    x, y_padded = split_rows(np.pad(x, ((0, rest), (0, 0))), X), split_rows(np.pad(y, (0, rest)), Y)
    return [float(total) / len(y) for total in sums(model, x, y_padded, weight)]


def train(model, x, y, epochs, folder, batch_size=64, learning_rate=1e-2):
    """Yields a record a step and a record an epoch; goes on from the last checkpoint in the folder."""
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    manager.restore_or_initialize()
    steps_per_epoch = len(y) // batch_size
    while step < epochs * steps_per_epoch:
        epoch, at = divmod(int(step), steps_per_epoch)
        order = np.random.default_rng([0, epoch]).permutation(len(y))  # follows from the epoch alone
        rows = order[at * batch_size : (at + 1) * batch_size]
        loss = train_step(model, split_rows(x[rows], X), split_rows(y[rows], Y), learning_rate)
        step.assign_add(1)
        yield {"step": int(step), "epoch": epoch + 1, "loss": float(loss)}
        if step % steps_per_epoch == 0:
            manager.save()
            loss, accuracy = evaluate(model, x, y)
            yield {"step": int(step), "epoch": epoch + 1, "test_loss": loss, "test_accuracy": accuracy}


def main(folder):
    random = np.random.default_rng(1)
    x = random.normal(size=(1000, 1200)).astype("float32") / 35
    y = (x[:, :100].sum(axis=1) > 0).astype("int64")
    for record in train(MLP(seed=0), x, y, 5, folder):
        if "test_loss" in record:
            print(record)


if __name__ == "__main__":
    main(sys.argv[1])
