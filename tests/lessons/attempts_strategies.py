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
        if operation:
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


def by_axis(strategy, model, dataset):
    """Takes losses per example, which `reduce` averages over all examples of a batch."""
    means, counts = [], []
    for features, labels in strategy.experimental_distribute_dataset(dataset):
        squares = strategy.run(lambda x, y: tf.square(model(x) - y)[:, 0], args=(features, labels))
        means.append(float(strategy.reduce("MEAN", squares, axis=0)))
        counts.append(sum(len(each) for each in strategy.experimental_local_results(squares)))
    return np.average(means, weights=counts)


def averaging_parts(strategy, model, dataset):
    means = [
        float(each)
        for batch in strategy.experimental_distribute_dataset(dataset)
        for each in strategy.experimental_local_results(
            strategy.run(lambda x, y: tf.reduce_mean(tf.square(model(x) - y)), args=batch)
        )
    ]
    return np.mean(means)


def averaging_batches(strategy, model, dataset):
    return np.mean([loss / count for loss, count in sums(strategy, model, dataset)])


def on_one_device(strategy, model, dataset):
    return np.concatenate([(model(features) - labels) ** 2 for features, labels in dataset]).mean()


def nothing(*inputs):
    return None


ATTEMPTS = {
    "strategies-by-hand": Attempts(
        right=(step(operation=tf.distribute.ReduceOp.SUM), tf.function(step())),
        wrong=(
            (step(operation=None), "drift apart"),
            (step(divide=by_own, operation="MEAN"), "Parts may differ"),
            (step(sign=1), "from all of them"),
            (step(returned=nothing), "Return one number"),
        ),
    ),
    "strategies-evaluate": Attempts(
        right=(mean_loss, by_axis),
        wrong=(
            (averaging_parts, "no example"),
            (averaging_batches, "divide by the number of examples"),
            (on_one_device, "outside the replicas"),
            (lambda *given: mean_loss(*given, split=False), "the same examples"),
        ),
    ),
}
