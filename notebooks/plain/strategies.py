"""Trains with `fit` and with a loop under tf.distribute, on one, two and four replicas: the same numbers.

Run it: python strategies.py
"""

import numpy as np
import tensorflow as tf

# Four virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On a machine with GPUs leave these two lines out, and name the GPUs below.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
tf.config.set_soft_device_placement(False)  # a device that does not exist is an error

keras = tf.keras
RATE, BATCH = 0.05, 8  # a batch that can be divided by each number of replicas


def line():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def on_replica(model, x, y, num_examples):
    with tf.GradientTape() as tape:
        errors = model(x, training=True) - y
        total = tf.reduce_sum(tf.square(errors))
        loss = total / tf.cast(num_examples, tf.float32)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    # This adds up the gradients of all replicas, then updates
    model.optimizer.apply(gradients, variables)
    return loss


def count(y):
    return tf.shape(y)[0]


@tf.function(reduce_retracing=True)  # parts differ in size
def step(strategy, model, x, y):
    # How many examples have all replicas together?
    sizes = strategy.run(count, (y,))
    num_examples = strategy.reduce("SUM", sizes, axis=None)
    # Each replica computes its share of the loss, and updates
    losses = strategy.run(on_replica, (model, x, y, num_examples))
    return strategy.reduce("SUM", losses, axis=None)


def train_in_loop(strategy, model, x, y, batch_size):
    with strategy.scope():
        # Adam would otherwise make its variables inside the step
        model.optimizer.build(model.trainable_variables)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    dataset = dataset.batch(batch_size)
    batches = strategy.experimental_distribute_dataset(dataset)
    losses = []
    for features, labels in batches:
        loss = step(strategy, model, features, labels)
        losses.append(float(loss))
    return losses


def by_hand(num_examples):
    """Returns the weight, which the bias always equals, and the losses, on one device: 1 goes to 1."""
    weight, losses = 0.0, []
    # All examples are equal, so the size of the last batch changes nothing.
    for _start in range(0, num_examples, BATCH):
        error = 1 - 2 * weight
        losses.append(error**2)
        weight += RATE * 2 * error
    return weight, losses


if __name__ == "__main__":
    for num_replicas in (1, 2, 4):
        devices = [f"CPU:{number}" for number in range(num_replicas)]
        to_one = tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=to_one)

        # `fit` needs full batches: 40 examples. The loop takes a last batch of one, too.
        full, more = np.ones((40, 1), "float32"), np.ones((41, 1), "float32")
        with strategy.scope():
            fitted, looped = line(), line()
        told = fitted.fit(full, full, batch_size=BATCH, shuffle=False, verbose=0).history["loss"]
        losses = train_in_loop(strategy, looped, more, more, BATCH)

        copies = strategy.experimental_local_results(looped.trainable_variables[0].value)
        assert len(copies) == num_replicas  # one on each device: the scope was not forgotten
        (fit_weight, fit_losses), (loop_weight, loop_losses) = by_hand(40), by_hand(41)
        weights = [model.get_weights()[0].item() for model in (fitted, looped)]
        print(f"{num_replicas} replicas: fit {weights[0]:.5f}, loop {weights[1]:.5f}")
        print(f"   by hand: fit {fit_weight:.5f}, loop {loop_weight:.5f}")
        assert np.allclose(weights, [fit_weight, loop_weight], atol=1e-5)
        assert np.allclose(told, np.mean(fit_losses), atol=1e-5)
        assert np.allclose(losses, loop_losses, atol=1e-5)
