"""Attempts at the exercises of `custom_training`."""

import tensorflow as tf

from tests.lessons.attempts import Attempts

average, scaled = tf.nn.compute_average_loss, tf.nn.scale_regularization_loss


def share(losses, model, size):
    return average(losses, global_batch_size=size) + scaled(model.losses)


def called_twice(model, *others):
    model(others[1], training=True)
    return replica_step()(model, *others)


def by_the_optimizer(optimizer, gradients, variables):
    optimizer.apply(gradients, variables)


def by_hand(optimizer, gradients, variables):
    gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(optimizer.learning_rate * gradient)


def replica_step(divide=share, *, variables=None, apply=by_the_optimizer, returned=None):
    """Returns an answer to custom_training-replica-step, with one of its parts in another way."""

    def answer(model, optimizer, images, labels, size):
        trained = variables(model) if variables else model.trainable_variables
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = divide(losses, model, size)
        apply(optimizer, tape.gradient(loss, trained), trained)
        return returned(loss, logits) if returned else (loss, logits)

    return answer


def counting(model, optimizer, images, labels, _size):
    """Counts the global batch in the step, before it calls the model."""
    size = tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(labels)[0])
    return replica_step()(model, optimizer, images, labels, size)


def by_keras(model, optimizer, images, labels, size):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = loss_of(labels, logits) / tf.cast(size, tf.float32) + sum(model.losses) / replicas
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return [loss, logits]


def accumulated(divide=lambda losses, size: average(losses, global_batch_size=size), *, wrap=None):
    """Returns an answer to custom_training-accumulated that divides as it is told."""

    def answer(model, optimizer, micro_batches, size):
        def taken(images, labels):
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                loss = divide(losses, size)
            return loss, *tape.gradient(loss, model.trainable_variables)

        take = wrap(taken) if wrap else taken
        total, *sums = (sum(each) for each in zip(*(take(*pair) for pair in micro_batches), strict=True))
        optimizer.apply(sums, model.trainable_variables)
        return total

    return answer


def by_own_rows(losses, size):
    """Is right unless there are no rows."""
    return tf.reduce_mean(losses) * tf.cast(tf.size(losses), tf.float32) / tf.cast(size, tf.float32)


def at_once(model, optimizer, micro_batches, size):
    images, labels = (tf.concat(kind, axis=0) for kind in zip(*micro_batches, strict=True))
    return replica_step()(model, optimizer, images, labels, size)[0]


def under_one_tape(model, optimizer, micro_batches, size):
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.GradientTape() as tape:
        losses = [cross_entropy(labels, model(images, training=True)) for images, labels in micro_batches]
        total = average(tf.concat(losses, 0), global_batch_size=size)
    optimizer.apply(tape.gradient(total, model.trainable_variables), model.trainable_variables)
    return total


def one_after_another(model, optimizer, micro_batches, size):
    return sum(replica_step()(model, optimizer, *pair, size)[0] for pair in micro_batches)


def reduced_each(take):
    def reduced(images, labels):
        loss, *gradients = take(images, labels)
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        return loss, *(each / replicas() for each in gradients)

    return reduced


def replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


ATTEMPTS = {
    "custom_training-replica-step": Attempts(
        takes_long=True,
        right=(by_keras, counting),
        wrong=(
            (
                replica_step(
                    lambda losses, model, size: (
                        average(losses, global_batch_size=size) + tf.add_n(model.losses) / replicas()
                    )
                ),
                "no regularization losses",
            ),
            (replica_step(lambda losses, *_others: tf.reduce_mean(losses)), "regularization is left out"),
            (called_twice, "Call the model once"),
            (replica_step(apply=by_hand), "step of the given optimizer"),
            (replica_step(returned=lambda loss, logits: (loss, tf.nn.softmax(logits))), "go to the metric"),
            (replica_step(returned=lambda loss, logits: loss), "return loss, logits"),
            (replica_step(variables=lambda model: model.variables), "Unknown variable"),
        ),
    ),
    "custom_training-accumulated": Attempts(
        takes_long=True,
        right=(accumulated(), accumulated(wrap=tf.function)),
        wrong=(
            (accumulated(lambda losses, size: tf.reduce_mean(losses)), "divided by `size`"),
            (accumulated(by_own_rows), "an empty micro-batch"),
            (accumulated(wrap=reduced_each), "only the optimizer"),
            (under_one_tape, "before the next"),
            (at_once, "once for each micro-batch"),
            (one_after_another, "more than once in a step"),
        ),
    ),
}
