"""Attempts at the exercise of `estimators`: programs of Keras for that of an Estimator."""

from contextlib import nullcontext

import keras
import tensorflow as tf

from tests.lessons.attempts import Attempts


def trained(strategy, x, y, steps, *, start="zeros", scope=None, faster=1, cut=None):
    with scope or strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer=start)])
        model.compile(keras.optimizers.SGD(faster * 0.02), "mse")
    examples = tf.data.Dataset.from_tensor_slices((x, y))
    batch = 8 * strategy.num_replicas_in_sync
    batches = cut(examples, batch) if cut else examples.repeat().batch(batch)
    model.fit(batches, steps_per_epoch=steps, verbose=0)
    return model


def in_a_loop(strategy, x, y, steps):
    examples = tf.data.Dataset.from_tensor_slices((x, y)).repeat()
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    for features, labels in examples.batch(8 * strategy.num_replicas_in_sync).take(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(features) - labels) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign(variable - 0.02 * gradient)
    return model


ATTEMPTS = {
    "estimators-ported": Attempts(
        right=(trained, in_a_loop),
        wrong=(
            (lambda *given: trained(*given, cut=lambda all, _: all.repeat().batch(8)), "share it"),
            (lambda *given: trained(*given, cut=lambda all, n: all.batch(n).repeat()), "Repeat the data"),
            (lambda *given: trained(*given, cut=lambda all, n: all.repeat().shuffle(9, 1).batch(n)), "order"),
            (lambda *given: trained(*given, scope=nullcontext()), "One device computes"),
            (lambda *given: trained(*given, start="ones"), "start from zeros"),
            (lambda *given: trained(*given, faster=given[0].num_replicas_in_sync), "too large by"),
            (lambda strategy, x, y, steps: trained(strategy, x, y, 2 * steps), "`steps` steps"),
            (lambda *given: trained(*given).get_weights(), "For replicas: 2"),
            (lambda *given: print(trained(*given)), "Is a `return` missing"),
        ),
        takes_long=True,
    ),
}
