"""Attempts at the exercises of `custom_training`."""

import tensorflow as tf

from tests.lessons.attempts import Attempts

average, scaled = tf.nn.compute_average_loss, tf.nn.scale_regularization_loss


def share(losses, model, size):
    return average(losses, global_batch_size=size) + scaled(model.losses)


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


def mean_of_own(losses, penalties, size):
    share = tf.cast(tf.shape(losses)[0], tf.float32) / tf.cast(size, tf.float32)
    return tf.reduce_mean(losses) * share + scaled(penalties)


def by_keras(model, optimizer, images, labels, size):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = loss_of(labels, logits) / tf.cast(size, tf.float32) + sum(model.losses) / replicas
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return [loss, logits]


def objective(combine):
    return lambda losses, penalties, size: combine(average(losses, global_batch_size=size), penalties)


def replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


ATTEMPTS = {
    "custom_training-replica-step": Attempts(
        takes_long=True,
        right=(by_keras,),
        wrong=(
            (
                replica_step(lambda losses, model, size: tf.reduce_mean(losses) + scaled(model.losses)),
                "its own examples only",
            ),
            (
                replica_step(
                    lambda losses, model, size: (
                        average(losses, global_batch_size=size) + tf.add_n(model.losses) / replicas()
                    )
                ),
                "no penalties",
            ),
            (replica_step(apply=by_hand), "step of the given optimizer"),
            (replica_step(returned=lambda loss, logits: (loss, tf.nn.softmax(logits))), "go to the metric"),
            (replica_step(returned=lambda loss, logits: loss), "return loss, logits"),
            (replica_step(variables=lambda model: model.variables), "Unknown variable"),
        ),
    ),
    "custom_training-objective": Attempts(
        takes_long=True,
        right=(
            objective(lambda loss, penalties: loss + tf.reduce_sum(penalties) / replicas()),
            lambda losses, penalties, size: average(losses + sum(penalties), global_batch_size=size),
        ),
        wrong=(
            (lambda losses, penalties, size: average(losses) + scaled(penalties), "as Keras does by default"),
            (objective(lambda loss, penalties: loss + tf.add_n(penalties) / replicas()), "fails"),
            (mean_of_own, "no example here"),
            (lambda losses, penalties, size: losses, "Return one number"),
        ),
    ),
}
