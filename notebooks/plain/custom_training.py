"""Train on four replicas with a loop of your own, resume, restore: python custom_training.py FOLDER."""

import sys

import numpy as np
import tensorflow as tf

cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def convolutional():
    keras = tf.keras.layers
    layers = [tf.keras.Input((28, 28, 1))]
    for filters in (32, 64):
        layers.append(keras.Conv2D(filters, 3, activation="relu"))
        layers.append(keras.MaxPooling2D())
    layers += [keras.Flatten(), keras.Dense(64, activation="relu")]
    return tf.keras.Sequential([*layers, keras.Dense(10)])


def build(strategy, make_model=convolutional):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model, adam = make_model(), tf.keras.optimizers.Adam()
        adam.build(model.trainable_variables)  # makes its slots
    return model, adam


def replica_step(model, optimizer, images, labels, size):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        loss += tf.nn.scale_regularization_loss(model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits


def make_train_step(strategy, model, optimizer, inner):
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def on_replica(images, labels, size):
        loss, logits = inner(model, optimizer, images, labels, size)
        accuracy.update_state(labels, logits)
        return loss

    @tf.function(reduce_retracing=True)
    def train_step(images, labels):
        accuracy.reset_state()
        sizes = strategy.run(lambda rows: tf.shape(rows)[0], (labels,))
        size = strategy.reduce("SUM", sizes, axis=None)
        losses = strategy.run(on_replica, (images, labels, size))
        return strategy.reduce("SUM", losses, axis=None)

    return train_step, accuracy


def train(strategy, model, adam, inner, dataset, steps, epochs, folder):
    train_step, accuracy = make_train_step(strategy, model, adam, inner)
    epoch, iterator = tf.Variable(0), iter(dataset)
    state = tf.train.Checkpoint(model=model, adam=adam, epoch=epoch)
    manager = tf.train.CheckpointManager(state, folder, max_to_keep=2)
    manager.restore_or_initialize()
    while epoch < epochs:
        for _ in range(steps):
            loss = float(train_step(*next(iterator)))
            now = {"step": int(adam.iterations.numpy()), "epoch": int(epoch) + 1}
            yield {**now, "loss": loss, "accuracy": float(accuracy.result())}
        epoch.assign_add(1)
        if epoch % 2 == 0:
            manager.save()


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]  # GPUs: leave these two lines out, and name them below
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    labels, folder = np.arange(500) % 10, (sys.argv[1:] or ["run"])[0]
    images = np.random.default_rng(0).random((500, 28, 28, 1), "float32")
    images[np.arange(500), 2 * labels] += 1  # the class is a light row
    devices = [f"CPU:{n}" for n in range(4)]
    four = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.batch(256).repeat()  # two batches are an epoch
    data = four.experimental_distribute_dataset(data)
    for epochs in (2, 4):  # a new model goes on from the checkpoint
        model, adam = build(four)
        print(*train(four, model, adam, replica_step, data, 2, epochs, folder), sep="\n")
    alone, its_adam = build(tf.distribute.get_strategy())
    whole = tf.train.Checkpoint(model=alone, adam=its_adam, epoch=tf.Variable(0))
    whole.restore(tf.train.latest_checkpoint(folder)).assert_consumed()
    assert np.allclose(alone(images), model(images), atol=1e-4)
