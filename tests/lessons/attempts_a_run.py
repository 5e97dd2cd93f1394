"""Attempts at the exercises of `a_run`."""

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def answers_of(model, x):
    logits, _moments = model(x, (model.mean, model.variance))
    return tf.argmax(logits, axis=1)


def by_differences(model, x, y, weight):
    difference = tf.cast(answers_of(model, x) - y, tf.float32)
    return tf.reduce_sum(weight * tf.nn.relu(difference)), tf.reduce_sum(weight * tf.nn.relu(-difference))


def of_the_batch(model, x, y, weight):
    difference = tf.cast(tf.argmax(model(x)[0], axis=1) - y, tf.float32)
    return tf.reduce_sum(weight * tf.nn.relu(difference)), tf.reduce_sum(weight * tf.nn.relu(-difference))


def with_a_mask(model, x, y, weight):
    answers, reviews = answers_of(model, x), weight > 0
    kinds = (y == 0) & (answers == 1), (y == 1) & (answers == 0)
    return [tf.reduce_sum(tf.cast(tf.boolean_mask(kind, reviews), tf.float32)) for kind in kinds]


def with_a_new_axis(model, x, y, weight):
    return tf.one_hot(y, 2) * weight[:, None]


ATTEMPTS = {
    "a_run-errors": Attempts(
        takes_long=True,
        right=(tf.function(by_differences), lambda *rows: tf.stack(by_differences(*rows))),
        wrong=(
            (lambda *rows: by_differences(*rows)[::-1], "label 0 and answer 1"),
            (of_the_batch, "moving moments"),
            (with_a_mask, "Sum the weights"),
            (with_a_new_axis, "expand_dims"),
        ),
    ),
    "a_run-break-even": Attempts(
        right=(lambda fixed, per_row, devices: fixed * devices / (per_row * (devices - 1)),),
        wrong=(
            (lambda fixed, per_row, devices: fixed / per_row, "share of the rows"),
            (lambda fixed, per_row, devices: fixed / (per_row * (devices - 1)), "by hand"),
        ),
    ),
}
