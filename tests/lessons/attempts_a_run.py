"""Attempts at the exercises of `a_run`."""

import math

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def answers_of(model, x):
    logits, _moments = model(x, (model.mean, model.variance))
    return tf.argmax(logits, axis=1)


def by_differences(model, x, y, weight):
    difference = tf.cast(answers_of(model, x) - y, tf.float32)
    return tf.reduce_sum(weight * tf.nn.relu(difference)), tf.reduce_sum(weight * tf.nn.relu(-difference))


@tf.function
def by_products(model, x, y, weight):
    answers = tf.one_hot(answers_of(model, x), 2)
    labels = tf.one_hot(y, 2) * tf.expand_dims(weight, 1)
    table = tf.matmul(labels, answers, transpose_a=True)
    return table[0, 1], table[1, 0]


def without_weights(model, x, y, weight):
    return by_differences(model, x, y, tf.ones_like(weight))


def of_the_batch(model, x, y, weight):
    difference = tf.cast(tf.argmax(model(x)[0], axis=1) - y, tf.float32)
    return tf.reduce_sum(weight * tf.nn.relu(difference)), tf.reduce_sum(weight * tf.nn.relu(-difference))


def as_shares(model, x, y, weight):
    return [each / tf.reduce_sum(weight) for each in by_differences(model, x, y, weight)]


def as_means(model, x, y, weight):
    return [each / weight.shape[0] for each in by_differences(model, x, y, weight)]


def with_moments_swapped(model, x, y, weight):
    logits, _moments = model(x, (model.variance, model.mean))
    difference = tf.cast(tf.argmax(logits, axis=1) - y, tf.float32)
    return tf.reduce_sum(weight * tf.nn.relu(difference)), tf.reduce_sum(weight * tf.nn.relu(-difference))


def with_a_mask(model, x, y, weight):
    answers, reviews = answers_of(model, x), weight > 0
    kinds = (y == 0) & (answers == 1), (y == 1) & (answers == 0)
    return [tf.reduce_sum(tf.cast(tf.boolean_mask(kind, reviews), tf.float32)) for kind in kinds]


def of_each_row(model, x, y, weight):
    difference = tf.cast(answers_of(model, x) - y, tf.float32)
    return weight * tf.nn.relu(difference), weight * tf.nn.relu(-difference)


def of_unlike_types(model, x, y, weight):
    return tf.reduce_sum(weight * (answers_of(model, x) - y)), tf.reduce_sum(weight)


def with_a_new_axis(model, x, y, weight):
    return tf.one_hot(y, 2) * weight[:, None]


def rounding(how):
    return lambda fixed, per_row, devices: how(fixed / (per_row * (1 - 1 / devices)))


ATTEMPTS = {
    "a_run-errors": Attempts(
        takes_long=True,
        right=(by_differences, by_products, lambda *rows: tf.stack(by_differences(*rows))),
        wrong=(
            (without_weights, "counted like reviews"),
            (lambda *rows: by_differences(*rows)[::-1], "swapped"),
            (of_the_batch, "moving moments"),
            (as_shares, "do not divide"),
            (as_means, "do not divide"),
            (with_moments_swapped, "Sum the weights"),
            (with_a_mask, "Sum the weights"),
            (of_each_row, "Sum the weights of all rows"),
            (of_unlike_types, "Your function fails"),
            (with_a_new_axis, "expand_dims"),
        ),
    ),
    "a_run-break-even": Attempts(
        right=(lambda fixed, per_row, devices: fixed * devices / (per_row * (devices - 1)),),
        wrong=(
            (lambda fixed, per_row, devices: fixed / per_row, "share of the rows"),
            (lambda fixed, per_row, devices: fixed / (per_row * devices), "is saved"),
            (lambda fixed, per_row, devices: fixed / per_row * (1 - 1 / devices), "multiplies"),
            *((rounding(how), "Do not round") for how in (math.ceil, round, lambda rows: round(rows, 2))),
            (lambda fixed, per_row, devices: fixed * devices / per_row, "How much less"),
            (lambda fixed, per_row, devices: fixed / (per_row * (devices - 1)), "by hand"),
        ),
    ),
}
