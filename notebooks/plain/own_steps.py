"""Train a GAN on four replicas with a step of your own, clip whole gradients, save and restore.

Run it with a folder for its checkpoint: python own_steps.py FOLDER
"""

import sys

import numpy as np
import tensorflow as tf

sigmoid_cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits


def build(strategy, make_model, make_optimizer):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer()
        # A compiled step must not make variables
        optimizer.build(model.trainable_variables)
    return model, optimizer


def generator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((8,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(784, activation="sigmoid"),
            layers.Reshape((28, 28, 1)),
        ]
    )


def discriminator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(128, activation="leaky_relu"),
            layers.Dense(1),
        ]
    )


def sgd():
    return tf.keras.optimizers.SGD(0.1)


def adam():
    return tf.keras.optimizers.Adam(1e-3, beta_1=0.5)


def make_pair(strategy, make_optimizer):
    g, g_optimizer = build(strategy, generator, make_optimizer)
    d, d_optimizer = build(strategy, discriminator, make_optimizer)
    return [g, d], [g_optimizer, d_optimizer]


# Noise for each example, by its number: the same on any number of devices
def with_noise(number, image):
    noise = tf.random.stateless_normal((8,), seed=[0, number])
    return image, noise


# Clips the gradient of the global batch, where Keras's `global_clipnorm` clips that of each replica
def clipped(gradients, limit):
    context = tf.distribute.get_replica_context()
    totals = context.all_reduce("SUM", gradients)
    totals, _norm = tf.clip_by_global_norm(totals, limit)
    # `apply` adds up once more, over the replicas
    return [each / context.num_replicas_in_sync for each in totals]


# What one replica does. `batch_size` is the global one.
def pair_step(models, optimizers, images, noise, batch_size):
    generator, discriminator = models
    with tf.GradientTape(persistent=True) as tape:
        fakes = generator(noise, training=True)
        real_scores = discriminator(images, training=True)
        fake_scores = discriminator(fakes, training=True)
        ones = tf.ones_like(real_scores)
        zeros = tf.zeros_like(fake_scores)
        g_losses = sigmoid_cross_entropy(ones, fake_scores)
        d_losses = sigmoid_cross_entropy(ones, real_scores)
        d_losses += sigmoid_cross_entropy(zeros, fake_scores)
        g_loss = tf.reduce_sum(g_losses) / batch_size
        d_loss = tf.reduce_sum(d_losses) / batch_size

    g_variables = generator.trainable_variables
    d_variables = discriminator.trainable_variables
    g_gradients = clipped(tape.gradient(g_loss, g_variables), 1.0)
    d_gradients = clipped(tape.gradient(d_loss, d_variables), 1.0)
    g_optimizer, d_optimizer = optimizers
    g_optimizer.apply(g_gradients, g_variables)
    d_optimizer.apply(d_gradients, d_variables)
    return d_loss


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others):
        differences.append(np.abs(weight - other).max())
    return float(max(differences))


# Three steps of SGD on 71 images each: four replicas get 18, 18, 18, 17
def weights_after(strategy, examples):
    models, optimizers = make_pair(strategy, sgd)
    batches = examples.batch(71, drop_remainder=True).take(3)
    for images, noise in strategy.experimental_distribute_dataset(batches):
        strategy.run(pair_step, args=(models, optimizers, images, noise, 71))
    return models[0].get_weights() + models[1].get_weights()


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

    # Made-up images: a light row
    images = np.zeros((500, 28, 28, 1), "float32")
    images[np.arange(500), 4 + np.arange(500) % 20] = 1
    data = tf.data.Dataset.from_tensor_slices(images)

    # Four replicas make the steps of one device
    in_order = data.enumerate().map(with_noise)
    gap = largest_difference(weights_after(four, in_order), weights_after(one, in_order))
    print("off by", gap)
    assert gap < 1e-5

    # Train, with one iterator for the whole run
    models, optimizers = make_pair(four, adam)
    examples = data.shuffle(500, seed=0).repeat().enumerate().map(with_noise)
    batches = four.experimental_distribute_dataset(examples.batch(128))
    iterator = iter(batches)

    @tf.function
    def train_step(images, noise):
        losses = four.run(pair_step, args=(models, optimizers, images, noise, 128))
        return four.reduce("SUM", losses, axis=None)

    for step in range(1, 201):
        loss = train_step(*next(iterator))
        if step % 50 == 0:
            print("step", step, "loss of the discriminator", float(loss))

    # Save, and restore without a strategy
    saved = tf.train.Checkpoint(model=models[0], adam=optimizers[0])
    path = saved.save(folder + "/trained")
    alone, its_adam = build(one, generator, adam)
    whole = tf.train.Checkpoint(model=alone, adam=its_adam)
    whole.restore(path).assert_consumed()
    noise = np.random.default_rng(1).normal(size=(11, 8)).astype("float32")
    assert np.allclose(alone(noise), models[0](noise), atol=1e-5)
    print("restored after", int(its_adam.iterations.numpy()), "steps")
