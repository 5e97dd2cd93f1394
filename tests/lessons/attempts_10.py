"""Attempts at the exercises of lesson 10."""

import numpy as np
import tensorflow as tf

from tests.lessons.attempts import Attempts

average, scaled = tf.nn.compute_average_loss, tf.nn.scale_regularization_loss


def cross_entropy(**options):
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, **options)


def replica_step(
    divide=lambda losses, size: average(losses, global_batch_size=size),
    *,
    returned=None,
    update=True,
    training=True,
    variables=lambda model: model.trainable_variables,
):
    """Returns an answer to 10-replica-step, with one of its parts in another way."""

    def answer(model, optimizer, images, labels, global_batch_size):
        with tf.GradientTape() as tape:
            logits = model(images, training=True) if training else model(images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = divide(losses, global_batch_size)
        if update:
            optimizer.apply(tape.gradient(loss, variables(model)), variables(model))
        return returned(losses) if returned else loss

    return answer


def by_keras(model, optimizer, images, labels, global_batch_size):
    with tf.GradientTape() as tape:
        total = cross_entropy(reduction="sum")(labels, model(images, training=True))
        loss = total / tf.cast(global_batch_size, tf.float32)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


def objective(combine):
    return lambda losses, penalties, size: combine(average(losses, global_batch_size=size), penalties)


def replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


def nothing(*inputs):
    return None


def sizes_of(count_of):
    """Returns an answer to 10-part-sizes from a function of a replica, the greatest part and the examples."""
    return lambda n, count: [count_of(at, -(-n // count), n) for at in range(count)]


ATTEMPTS = {
    "10-part-sizes": Attempts(
        right=(sizes_of(lambda at, size, n: len(range(n)[at * size : (at + 1) * size])),),
        wrong=(
            (lambda n, count: [len(part) for part in np.array_split(range(n), count)], "as equal as"),
            (lambda n, count: [n // count] * (count - 1) + [n - n // count * (count - 1)], "rounded down"),
            (sizes_of(lambda at, size, n: min(size, n - at * size)), "by hand"),
            (lambda n, count: [min(-(-n // count), n - at) for at in range(0, n, -(-n // count))], "every"),
            (nothing, "return"),
            (2, "function"),
        ),
    ),
    "10-example-weights": Attempts(
        right=(lambda sizes: np.array([0 if not size else 1 / size / len(sizes) for size in sizes], "f"),),
        wrong=(
            (lambda sizes: [1 / sum(sizes)] * len(sizes), "should count"),
            (lambda sizes: [1 / size if size else 0 for size in sizes], "then by the number of replicas"),
            (lambda sizes: [size * len(sizes) for size in sizes], "divisors"),
            (lambda sizes: [n and 1 / n / np.count_nonzero(sizes) for n in sizes], "counts all replicas"),
            (lambda sizes: [1 / size / len(sizes) for size in sizes], "no example at all"),
            (nothing, "return"),
            (0.25, "function"),
        ),
    ),
    "10-replica-step": Attempts(
        right=(
            by_keras,
            replica_step(lambda losses, size: tf.reduce_sum(losses[:, None]) / tf.cast(size, tf.float32)),
        ),
        wrong=(
            (replica_step(lambda losses, size: tf.reduce_mean(losses)), "its own examples only"),
            (replica_step(lambda losses, size: average(losses)), "as Keras does by default"),
            (
                replica_step(lambda losses, size: average(losses, global_batch_size=size) / 2),
                "adds up already",
            ),
            (replica_step(update=False), "sum of the replicas' gradients"),
            (replica_step(returned=tf.reduce_sum), "what the replicas return"),
            (replica_step(returned=tf.identity), "Return one number"),
            (replica_step(returned=nothing), "Return one number"),
            (replica_step(training=False), "`training=True`"),
            (replica_step(variables=lambda model: model.variables), "Unknown variable"),
            (replica_step(returned=lambda losses: losses.numpy()), "fails"),
            (0.5, "function"),
        ),
    ),
    "10-objective": Attempts(
        right=(
            objective(
                lambda loss, penalties: loss + tf.reduce_sum(tf.stack(penalties)[:, None]) / replicas()
            ),
        ),
        wrong=(
            (objective(lambda loss, penalties: loss + sum(penalties)), "once for every replica"),
            (objective(lambda loss, penalties: loss), "left out"),
            (lambda losses, penalties, size: tf.reduce_mean(losses) + scaled(penalties), "own examples"),
            (lambda losses, penalties, size: average(losses) + scaled(penalties), "as Keras does by default"),
            (objective(lambda loss, penalties: loss + sum(penalties) / 2), "the sum over the replicas"),
            (objective(lambda loss, penalties: loss.numpy()), "fails"),
            (lambda losses, penalties, size: losses, "Return one number"),
            (nothing, "Return one number"),
            (0.5, "function"),
        ),
    ),
}
