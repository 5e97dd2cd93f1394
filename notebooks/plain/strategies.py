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

keras, ones = tf.keras, np.ones((100, 1), "float32")  # 1 goes to 1, a hundred times
squared_error = keras.losses.MeanSquaredError(reduction="none")


def line():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def on_replica(model, x, y, global_batch):
    with tf.GradientTape() as tape:
        losses = squared_error(y, model(x, training=True))
        loss = tf.nn.compute_average_loss(
            losses,
            global_batch_size=global_batch,
        )
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    model.optimizer.apply_gradients(zip(gradients, variables))  # adds up those of all replicas first
    return loss


def train(strategy, model, global_batch):
    @tf.function
    def step(x, y):
        return strategy.run(on_replica, (model, x, y, global_batch))

    dataset = tf.data.Dataset.from_tensor_slices((ones, ones))
    batches = dataset.batch(global_batch)
    for x, y in strategy.experimental_distribute_dataset(batches):
        yield step(x, y)


if __name__ == "__main__":
    global_batch = 20  # a multiple of each number of replicas, and 100 is a multiple of it
    weight, right = 0.0, []  # by hand: the weight, which the bias always equals, and the loss of each step
    for _step in range(2 * 100 // global_batch):
        error = 1 - 2 * weight
        right.append(error**2)
        weight += 0.05 * 2 * error

    for num_replicas in (1, 2, 4):
        devices = [f"CPU:{number}" for number in range(num_replicas)]
        to_one = tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=to_one)
        with strategy.scope():
            fitted, looped = line(), line()
        options = {"batch_size": global_batch, "epochs": 2, "shuffle": False, "verbose": 0}
        told = fitted.fit(ones, ones, **options).history["loss"]
        shares = [*train(strategy, looped, global_batch), *train(strategy, looped, global_batch)]
        losses = [float(strategy.reduce("SUM", share, axis=None)) for share in shares]
        weights = [model.get_weights()[0].item() for model in (fitted, looped)]
        print(f"{num_replicas} replicas: fit {weights[0]:.5f}, loop {weights[1]:.5f}, by hand {weight:.5f}")
        assert np.allclose(weights, weight, atol=1e-5)
        assert np.allclose(losses, right, atol=1e-5)
        assert np.allclose(told, [np.mean(right[:5]), np.mean(right[5:])], atol=1e-5)
