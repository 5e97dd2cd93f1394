"""Train on four replicas with a loop of your own, resume, restore.

Run it with a folder for its checkpoints: python custom_training.py FOLDER
"""

import sys

import numpy as np
import tensorflow as tf

cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def convolutional():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def build(
    strategy,
    make_model=convolutional,
    make_optimizer=tf.keras.optimizers.Adam,
):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer()
        optimizer.build(model.trainable_variables)
    return model, optimizer


# What one replica does. Everything is divided once, by the examples
# of the global batch; regularization by the number of replicas.
def replica_step(model, optimizer, images, labels, size):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        loss += tf.nn.scale_regularization_loss(model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits


# The same with micro-batches, for a batch that doesn't fit
def accumulated_step(model, optimizer, micro_batches, size):
    variables = model.trainable_variables
    sums = [tf.zeros_like(variable) for variable in variables]
    total = 0.0
    for images, labels in micro_batches:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = cross_entropy(labels, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        gradients = tape.gradient(loss, variables)
        for number, gradient in enumerate(gradients):
            sums[number] += gradient
        total += loss
    optimizer.apply(sums, variables)
    return total


def count(labels):
    return tf.shape(labels)[0]


@tf.function(reduce_retracing=True)
def train_step(strategy, model, optimizer, replica_step, accuracy, images, labels):
    counts = strategy.run(count, (labels,))
    size = strategy.reduce("SUM", counts, axis=None)
    arguments = (model, optimizer, images, labels, size)
    losses, logits = strategy.run(replica_step, arguments)
    strategy.run(accuracy.update_state, (labels, logits))
    return strategy.reduce("SUM", losses, axis=None)


# An epoch has `steps` batches. Every second one is saved.
def train(strategy, model, adam, replica_step, dataset, steps, epochs, folder):
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    of_run = strategy, model, adam, replica_step, accuracy
    epoch = tf.Variable(0)
    state = tf.train.Checkpoint(model=model, adam=adam, epoch=epoch)
    manager = tf.train.CheckpointManager(state, folder, max_to_keep=2)
    manager.restore_or_initialize()
    iterator = iter(dataset)  # one for the whole run
    while epoch < epochs:
        for _ in range(steps):
            accuracy.reset_state()
            loss = train_step(*of_run, *next(iterator))
            yield {
                "step": int(adam.iterations.numpy()),
                "epoch": int(epoch) + 1,
                "loss": float(loss),
                "accuracy": float(accuracy.result()),
            }
        epoch.assign_add(1)
        if epoch % 2 == 0:
            manager.save()


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others):
        differences.append(np.abs(weight - other).max())
    return float(max(differences))


# A step of SGD on 15 images: replicas get 4, 4, 4 and 3, and take
# them in two micro-batches
def weights_after(strategy, batch):
    def sgd():
        return tf.keras.optimizers.SGD(0.1)

    model, optimizer = build(strategy, make_optimizer=sgd)

    def on_replica(images, labels):
        halves = [
            (images[0::2], labels[0::2]),
            (images[1::2], labels[1::2]),
        ]
        size = tf.constant(15)
        return accumulated_step(model, optimizer, halves, size)

    @tf.function
    def step(images, labels):
        strategy.run(on_replica, (images, labels))

    step(*batch)
    return [weight.numpy() for weight in model.trainable_variables]


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "run"

    # On GPUs leave these lines out, and name "GPU:0" and so on below
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    one = tf.distribute.get_strategy()
    four = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1", "CPU:2", "CPU:3"],
        tf.distribute.ReductionToOneDevice(),
    )

    # Made-up images: the class is a light row
    labels = np.arange(500) % 10
    images = np.random.default_rng(0).random((500, 28, 28, 1))
    images = images.astype("float32")
    images[np.arange(500), 2 * labels] += 1

    def distributed(rows, batch_size):
        arrays = images[:rows], labels[:rows]
        data = tf.data.Dataset.from_tensor_slices(arrays)
        data = data.batch(batch_size).repeat()
        return four.experimental_distribute_dataset(data)

    # Accumulated on four replicas, as at once on one device
    batch = next(iter(distributed(15, 15)))
    whole = images[:15], labels[:15]
    gap = largest_difference(weights_after(four, batch), weights_after(one, whole))
    print("accumulated, off by", gap)
    assert gap < 1e-5

    # Two batches are an epoch. The second time a new model goes on
    # from the checkpoint
    data = distributed(500, 256)
    for epochs in [2, 4]:
        model, adam = build(four)
        for record in train(four, model, adam, replica_step, data, 2, epochs, folder):
            print(record)

    # Restore without a strategy
    alone, its_adam = build(one)
    saved = tf.train.Checkpoint(model=alone, adam=its_adam, epoch=tf.Variable(0))
    newest = tf.train.latest_checkpoint(folder)
    saved.restore(newest).assert_consumed()
    assert np.allclose(alone(images), model(images), atol=1e-4)
