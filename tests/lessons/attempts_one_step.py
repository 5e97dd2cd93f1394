"""Attempts at the exercises of `one_step`."""

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
MESH, OTHER = (dtensor.create_mesh([(name, 8)], device_type="CPU") for name in ("batch", "x"))
SPECS = {
    "images": ["batch", WHOLE, WHOLE],
    "labels": ["batch"],
    "losses": ["batch"],
    "gradient": [WHOLE, WHOLE],
    "mean_loss": [],
}


def layouts(**changed):
    return {name: dtensor.Layout(spec, MESH) for name, spec in {**SPECS, **changed}.items()}


def mean_of(rows, weights):
    return tf.reduce_sum(weights * rows, axis=0) / tf.reduce_sum(weights)


def centred(hidden, weights):
    mean = mean_of(hidden, weights)
    return mean, mean_of((hidden - mean) ** 2, weights)


def counted_in_python(hidden, weights):
    count = float(tf.reduce_sum(weights))
    mean = tf.reduce_sum(weights * hidden, axis=0) / count
    return mean, tf.reduce_sum(weights * (hidden - mean) ** 2, axis=0) / count


def masked(hidden, weights):
    return tf.nn.moments(tf.boolean_mask(hidden, tf.squeeze(weights, 1) > 0), axes=[0])


def with_squares(hidden, weights):
    return mean_of(hidden, weights), mean_of(hidden * hidden, weights)


ATTEMPTS = {
    "one_step-layouts": Attempts(
        right=(layouts(),),
        wrong=(
            (layouts(images=[WHOLE, "batch", WHOLE]), "first axis"),
            (layouts(images=["batch", WHOLE]), "3 axes"),
            (layouts(labels=[WHOLE]), "like the images"),
            (layouts(losses=[WHOLE]), "its own images"),
            (layouts(gradient=["batch", WHOLE]), "whole weight"),
            ({name: dtensor.Layout.replicated(OTHER, 3) for name in SPECS}, "Use the mesh"),
        ),
    ),
    "one_step-moments": Attempts(
        takes_long=True,
        right=(
            centred,
            tf.function(centred),
            counted_in_python,
            lambda hidden, weights: tf.nn.weighted_moments(hidden, [0], weights),
        ),
        wrong=(
            (lambda hidden, weights: tf.nn.moments(hidden, axes=[0]), "all rows: the padding"),
            (masked, "On one device this is right"),
            (with_squares, "squared distances"),
            (mean_of, "Two results"),
        ),
    ),
}
