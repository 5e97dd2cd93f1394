"""Attempts at the exercises of `strategies`."""

import contextlib
from functools import partial

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


def mended(
    strategy,
    make_model,
    x,
    y,
    *,
    scope=True,
    synchronized=True,
    full=64,
    size=lambda strategy: 64,
    frozen=False,
    cut=0,
):
    """An answer to strategies-mend, with one of its parts in another way."""
    with strategy.scope() if scope else contextlib.nullcontext():
        model = make_model(synchronized=synchronized)
    model.layers[0].trainable = not frozen
    end = cut or len(x) // full * full
    model.fit(x[:end], y[:end], batch_size=size(strategy), shuffle=False, verbose=0)
    return model


def nothing(*inputs):
    return None


ATTEMPTS = {
    "strategies-by-hand": Attempts(
        right=(step(operation=tf.distribute.ReduceOp.SUM), tf.function(step())),
        wrong=(
            (step(sign=1), "from all of them"),
            (step(divide=lambda own, batch: own), "own examples"),
            (step(returned=nothing), "Return one number"),
        ),
    ),
    "strategies-mend": Attempts(
        right=(mended,),
        wrong=(
            (partial(mended, scope=False), "into its scope"),
            (partial(mended, synchronized=False), "its own rows"),
            (partial(mended, full=1), "an update too many"),
            (partial(mended, frozen=True), "all full batches"),
            (partial(mended, cut=128), "an update too many"),
            (partial(mended, cut=-15), "all full batches"),
            (nothing, "Return the model"),
            (partial(mended, size=lambda strategy: 64 * strategy.num_replicas_in_sync), "all replicas"),
        ),
        takes_long=True,
    ),
}
