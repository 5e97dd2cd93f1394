"""Attempts at the exercises of `strategies`."""

import numpy as np
import tensorflow as tf

from tests.lessons.attempts import Attempts


def step(*, operation="SUM", divide=lambda own, batch: batch, sign=-1, returned=lambda loss: loss):
    """Returns an answer to strategies-by-hand, with one of its parts in another way."""

    def replica_step(weight, features, labels, learning_rate, global_batch):
        with tf.GradientTape() as tape:
            squares = tf.square((features @ weight[:, None])[:, 0] - labels)
            loss = tf.reduce_sum(squares) / divide(len(labels), global_batch)
        gradient = tape.gradient(loss, weight)
        gradient = tf.distribute.get_replica_context().all_reduce(operation, gradient)
        weight.assign_add(sign * learning_rate * gradient)
        return returned(loss)

    return replica_step


def by_own(own, batch):
    return own


def replicas():
    return tf.distribute.get_replica_context().num_replicas_in_sync


def sums(strategy, model, dataset, *, split=True):
    """Returns the sum of the squared errors and the number of examples of each batch."""

    def on_replica(features, labels):
        squares = tf.square(model(features) - labels)
        return tf.reduce_sum(squares), tf.size(squares)

    batches = strategy.experimental_distribute_dataset(dataset) if split else dataset
    both = [strategy.run(on_replica, args=batch) for batch in batches]
    return np.array([[float(strategy.reduce("SUM", each, axis=None)) for each in pair] for pair in both])


def mean_loss(strategy, model, dataset, **options):
    loss, count = sums(strategy, model, dataset, **options).sum(axis=0)
    return loss / count


def averaging_batches(strategy, model, dataset):
    return np.mean([loss / count for loss, count in sums(strategy, model, dataset)])


def nothing(*inputs):
    return None


ATTEMPTS = {
    "strategies-by-hand": Attempts(
        right=(step(operation=tf.distribute.ReduceOp.SUM), tf.function(step())),
        wrong=(
            (step(divide=by_own, operation="MEAN"), "Parts may differ"),
            (step(sign=1), "from all of them"),
            (step(returned=nothing), "Return one number"),
        ),
    ),
    "strategies-evaluate": Attempts(
        right=(mean_loss,),
        wrong=(
            (averaging_batches, "divide by the number of examples"),
            (lambda *given: mean_loss(*given, split=False), "the same examples"),
        ),
    ),
}
