"""Is training on several devices the same as on one? `fit` under tf.distribute on one, two and four replicas.

Run it: python strategies.py
"""

from functools import partial

import numpy as np
import tensorflow as tf

# Four virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On a machine with GPUs leave these two lines out, and name the GPUs below.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
tf.config.set_soft_device_placement(False)  # a device that does not exist is an error

tf.get_logger().setLevel("ERROR")  # it warns of many models in one program

keras = tf.keras


def linear_model():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def make_model(synchronized=False):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu")
    normalization = keras.layers.BatchNormalization(
        momentum=0.9,
        synchronized=synchronized,
    )
    layers = [hidden, normalization, keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((1200,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


def copies_of(variable, strategy):
    copies = strategy.experimental_local_results(variable.value)
    return [copy.numpy() for copy in copies]


def difference(model, other):
    pairs = zip(model.get_weights(), other.get_weights())
    return max(np.abs(a - b).max() for a, b in pairs)


def compare(make, x, y, batch_size, num_replicas):
    """Trains on one device and on several; returns how far losses, weights and copies are apart."""
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    to_one = tf.distribute.ReductionToOneDevice()
    mirrored = tf.distribute.MirroredStrategy(devices, cross_device_ops=to_one)
    models, losses = [], []
    for strategy in (tf.distribute.get_strategy(), mirrored):
        with strategy.scope():
            model = make()
        # Full batches alone, and in the same order
        full = len(x) // batch_size * batch_size
        fitted = model.fit(x[:full], y[:full], batch_size=batch_size, shuffle=False, verbose=0)
        models.append(model)
        losses.append(fitted.history["loss"][0])

    drift = 0
    for variable in models[1].weights:
        copies = copies_of(variable, mirrored)
        assert len(copies) == num_replicas, "no copy on each device: was the scope forgotten?"
        drift = max(drift, *(np.abs(copy - copies[0]).max() for copy in copies))
    return abs(losses[0] - losses[1]), difference(*models), drift


if __name__ == "__main__":
    numbers = np.linspace(-1, 1, 41, dtype="float32")[:, np.newaxis]
    random = np.random.default_rng(0)
    reviews, labels = random.random((193, 1200), "float32"), random.integers(2, size=193)
    cases = {
        "linear model": (linear_model, numbers, 3 * numbers, 8),
        "network": (partial(make_model, synchronized=True), reviews, labels, 64),
    }
    for name, (make, x, y, batch_size) in cases.items():
        for num_replicas in (1, 2, 4):
            gaps = compare(make, x, y, batch_size, num_replicas)
            loss, weights, copies = (f"{gap:.1e}" for gap in gaps)
            print(f"{name}, {num_replicas} replicas: loss {loss}, weights {weights}, copies {copies}")
            assert max(gaps) < 2e-3, "not the numbers of one device"  # Adam enlarges rounding
