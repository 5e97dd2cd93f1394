"""Train on eight devices: python a_run.py FOLDER. Kill it between two saves, run it again: it goes on."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def split_rows(array):
    array = np.pad(array, [(0, -len(array) % 8)] + [(0, 0)] * (array.ndim - 1))  # fills up with zeros
    return dtensor.pack(tf.split(array, 8), dtensor.Layout.batch_sharded(mesh, "batch", rank=array.ndim))


def variable(value):
    layout = dtensor.Layout.replicated(mesh, rank=value.ndim)
    return dtensor.DVariable(dtensor.copy_to_mesh(tf.constant(value, tf.float32), layout))


class MLP(tf.Module):
    def __init__(self, seed):
        super().__init__()
        draw = np.random.default_rng(seed).normal
        self.W1, self.b1 = variable(draw(0, np.sqrt(2 / 1200), (1200, 48))), variable(np.zeros(48))
        self.W2, self.b2 = variable(draw(0, np.sqrt(2 / 48), (48, 2))), variable(np.zeros(2))
        self.mean, self.variance = variable(np.zeros(48)), variable(np.ones(48))

    def __call__(self, x, moments=None):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = moments or tf.nn.moments(hidden, axes=[0])
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2, (mean, variance)


@tf.function
def train_step(model, x, y, learning_rate):
    weights = [model.W1, model.b1, model.W2, model.b2]
    with tf.GradientTape() as tape:
        logits, (mean, variance) = model(x)
        loss = tf.reduce_sum(cross_entropy(y, logits))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(learning_rate * gradient)
    model.mean.assign(0.9 * model.mean + 0.1 * mean)
    model.variance.assign(0.9 * model.variance + 0.1 * variance)
    return loss / x.shape[0], tf.reduce_mean(tf.cast(tf.argmax(logits, axis=1) == y, tf.float32))


def evaluate(model, x, y):
    labels, weight = split_rows(y), split_rows(np.ones(len(y), "float32"))  # rows of padding weigh 0
    logits, _moments = model(split_rows(x), (model.mean, model.variance))
    hits = tf.cast(tf.argmax(logits, axis=1) == labels, tf.float32)
    sums = [tf.reduce_sum(weight * each) for each in (cross_entropy(labels, logits), hits)]
    return {"test_loss": float(sums[0]) / len(y), "test_accuracy": float(sums[1]) / len(y)}


def records(model, step, x, y, epochs):
    steps_per_epoch = len(y) // 64
    while step < epochs * steps_per_epoch:
        epoch, at = divmod(int(step), steps_per_epoch)
        rows = np.random.default_rng([0, epoch]).permutation(len(y))[64 * at : 64 * (at + 1)]
        loss, accuracy = train_step(model, split_rows(x[rows]), split_rows(y[rows]), 1e-2)
        step.assign_add(1)  # never inside the step: there every device would add to it
        yield {"step": int(step), "epoch": epoch + 1, "loss": float(loss), "accuracy": float(accuracy)}


def train(model, x, y, validation, epochs, folder):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
    try:
        for record in records(model, step, x, y, epochs):
            yield record
            if record["step"] % (len(y) // 64) == 0:
                yield {**record, **evaluate(model, *validation)}
                manager.save()
    except GeneratorExit:  # closed at a yield, where step and model agree
        manager.save()


if __name__ == "__main__":
    y = np.arange(1100) % 2
    x = (np.random.default_rng(1).normal(y[:, None] / 10, 1, (1100, 1200)) / 35).astype("float32")
    folder = sys.argv[1] if len(sys.argv) > 1 else "run"
    for record in train(MLP(seed=0), x[:1000], y[:1000], (x[1000:], y[1000:]), 3, folder):
        print(record)
