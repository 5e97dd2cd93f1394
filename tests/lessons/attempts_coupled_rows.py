"""Attempts at the exercises of `coupled_rows`."""

import numpy as np

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def by_squares(means, variances):
    mean = tf.reduce_mean(means, axis=0)
    return mean, tf.reduce_mean(variances + means**2, axis=0) - mean**2


def of_made_up_rows(means, variances):
    """Spread the rows of a device evenly about its mean."""
    rows = tf.concat([means - variances**0.5, means + variances**0.5], axis=0)
    return list(tf.nn.moments(rows, axes=[0]))


def mean_of(rows, weights):
    return tf.reduce_sum(weights * rows, axis=0) / tf.reduce_sum(weights)


def centred(hidden, weights):
    # no weights[:, None] here
    mean = mean_of(hidden, weights)
    return mean, mean_of((hidden - mean) ** 2, weights)


def counted_in_python(hidden, weights):
    count = float(tf.reduce_sum(weights))
    mean = tf.reduce_sum(weights * hidden, axis=0) / count
    return mean, tf.reduce_sum(weights * (hidden - mean) ** 2, axis=0) / count


def masked(hidden, weights):
    return tf.nn.moments(tf.boolean_mask(hidden, tf.squeeze(weights, 1) > 0), axes=[0])


def zeros_are_padding(hidden, weights):
    return centred(hidden, tf.cast(tf.reduce_any(hidden != 0, axis=1, keepdims=True), tf.float32))


def with_squares(hidden, weights):
    return mean_of(hidden, weights), mean_of(hidden * hidden, weights)


ATTEMPTS = {
    "coupled_rows-global": Attempts(
        right=(
            by_squares,
            of_made_up_rows,
            lambda means, variances: np.stack(by_squares(means, variances)),
            lambda means, variances: tf.stack(by_squares(means, variances)),
        ),
        wrong=(
            (lambda means, variances: (means.mean(0), (variances + means**2).mean(0)), "axis 0"),
            (lambda means, variances: by_squares(means, variances)[1], "Two results"),
            (lambda means, variances: by_squares(means, variances)[::-1], "shape (units,)"),
            (lambda means, variances: (means.mean(1), variances.mean(1) + means.var(1)), "axis 0"),
        ),
    ),
    "coupled_rows-moments": Attempts(
        takes_long=True,
        right=(
            centred,
            tf.function(centred),
            counted_in_python,
            lambda hidden, weights: tf.nn.weighted_moments(hidden, [0], weights),
            lambda hidden, weights: (
                mean_of(hidden, weights),
                mean_of(hidden**2, weights) - mean_of(hidden, weights) ** 2,
            ),
        ),
        wrong=(
            (lambda hidden, weights: tf.nn.moments(hidden, axes=[0]), "variance of all rows"),
            (masked, "On one device this is right"),
            (with_squares, "squared distances"),
            (zeros_are_padding, "hold any numbers"),
            (lambda hidden, weights: tf.nn.moments(hidden[:36], axes=[0]), "8 or 16 rows"),
            (lambda hidden, weights: centred(np.array(hidden), np.array(weights)), "It raised"),
            (mean_of, "Two results"),
        ),
    ),
}
