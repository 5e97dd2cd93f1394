"""Adam by hand on eight devices, beside one device and MirroredStrategy. Run it: python from_scratch.py"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")  # GPUs: see mesh_and_layout.py


def on_mesh(components, dim=dtensor.UNSHARDED):
    spec = [dim] + [dtensor.UNSHARDED] * (components[0].ndim - 1)
    return dtensor.pack(components, dtensor.Layout(spec, mesh))


class MLP(tf.Module):
    def __init__(self, values, variable=tf.Variable):
        super().__init__()
        self.weights = [variable(value) for value in values]

    def __call__(self, x):
        W1, b1, W2, b2, W3, b3 = self.weights
        hidden = tf.nn.relu(x @ W1 + b1)
        return tf.nn.relu(hidden @ W2 + b2) @ W3 + b3


def updated(t, g, w, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * tf.square(g)
    rate = 1e-3 * tf.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return w - rate * m / (tf.sqrt(v) + 1e-7), m, v


class Adam(tf.Module):
    def __init__(self, variables, variable=tf.Variable):
        super().__init__()
        self.m = [variable(tf.zeros_like(each)) for each in variables]
        self.v = [variable(tf.zeros_like(each)) for each in variables]
        self.t = variable(tf.reduce_sum(self.m[0]))

    def apply(self, gradients, variables):
        t = self.t + 1
        new_values = [(self.t, t)]
        for g, w, m, v in zip(gradients, variables, self.m, self.v):
            new_values += zip((w, m, v), updated(t, g, w, m, v))
        for variable, value in new_values:  # last: DTensor may read what was written as it was before
            variable.assign(value)


def results_and_gradients(model, x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits), tape.gradient(loss, model.weights)


@tf.function
def train_step(model, optimizer, x, y):
    loss, accuracy, gradients = results_and_gradients(model, x, y)
    optimizer.apply(gradients, model.weights)
    return loss, accuracy, gradients


if __name__ == "__main__":
    random, values = np.random.default_rng(0), []
    for inputs, outputs in ((784, 700), (700, 500), (500, 10)):
        limit = np.sqrt(6 / (inputs + outputs))  # Xavier's
        values += [np.float32(random.uniform(-limit, limit, (inputs, outputs))), np.zeros(outputs, "float32")]
    one, eight = MLP(values), MLP([on_mesh([value] * 8) for value in values], dtensor.DVariable)
    adam_of_one, adam_of_eight = Adam(one.weights), Adam(eight.weights, dtensor.DVariable)
    strategy = tf.distribute.MirroredStrategy(mesh.local_devices(), tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        mirrored = MLP(values)
        adam = Adam(mirrored.weights)
    run = tf.function(lambda *arrays: strategy.run(results_and_gradients, (mirrored, *arrays)))
    y = np.arange(1280) % 10
    x = np.float32(random.random((10, 784))[y] + random.random((1280, 784))) / 2  # ten patterns, with noise
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(128)
    for step, replicas in enumerate(strategy.experimental_distribute_dataset(dataset)):
        rows = slice(128 * step, 128 * (step + 1))
        on_one = train_step(one, adam_of_one, x[rows], y[rows])[0]
        split = [on_mesh(np.split(array[rows], 8), "batch") for array in (x, y)]
        on_eight = train_step(eight, adam_of_eight, *split)[0]
        loss, _, gradients = run(*replicas)
        adam.apply([strategy.reduce("MEAN", each, axis=None) for each in gradients], mirrored.weights)
        losses = [float(each) for each in (on_one, on_eight, strategy.reduce("MEAN", loss, axis=None))]
        print(step, *(f"{each:.5f}" for each in losses))
        assert max(losses) - min(losses) < 1e-5
