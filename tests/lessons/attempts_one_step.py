"""Attempts at the exercises of `one_step`."""

import course_lib
from course_lib import MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

MESH = MeshSpec([("batch", 8)])
REAL_MESH = dtensor.create_mesh([("batch", 8)], device_type="CPU")


def layouts(**changed):
    entries = {
        "images": ["batch", UNSHARDED, UNSHARDED],
        "labels": ["batch"],
        "losses": ["batch"],
        "gradient": [UNSHARDED, UNSHARDED],
        "mean_loss": [],
    }
    return {name: LayoutSpec(each, MESH) for name, each in {**entries, **changed}.items()}


REAL = {
    "images": dtensor.Layout.batch_sharded(REAL_MESH, "batch", rank=3),
    "labels": dtensor.Layout.batch_sharded(REAL_MESH, "batch", rank=1),
    "losses": dtensor.Layout.batch_sharded(REAL_MESH, "batch", rank=1),
    "gradient": dtensor.Layout.replicated(REAL_MESH, rank=2),
    "mean_loss": dtensor.Layout.replicated(REAL_MESH, rank=0),
}


def mean_of(rows, weights):
    return tf.reduce_sum(weights * rows, axis=0) / tf.reduce_sum(weights)


def centred(hidden, weights):
    mean = mean_of(hidden, weights)
    return mean, mean_of((hidden - mean) ** 2, weights)


def by_squares(hidden, weights):
    mean = mean_of(hidden, weights)
    return mean, mean_of(hidden * hidden, weights) - mean * mean


def counted_in_python(hidden, weights):
    count = float(tf.reduce_sum(weights))
    mean = tf.reduce_sum(weights * hidden, axis=0) / count
    return mean, tf.reduce_sum(weights * (hidden - mean) ** 2, axis=0) / count


def masked(hidden, weights):
    return tf.nn.moments(tf.boolean_mask(hidden, tf.squeeze(weights, 1) > 0), axes=[0])


def with_variance(variance):
    def moments(hidden, weights):
        mean = mean_of(hidden, weights)
        return mean, variance(hidden, weights, (hidden - mean) ** 2)

    return moments


ATTEMPTS = {
    "one_step-layouts": Attempts(
        right=(REAL,),
        wrong=(
            (layouts(images=[UNSHARDED, "batch", UNSHARDED]), "first axis"),
            (layouts(images=["batch", UNSHARDED]), "3 axes"),
            (layouts(labels=[UNSHARDED]), "like the images"),
            (layouts(losses=[UNSHARDED]), "its own images"),
            (layouts(gradient=["batch", UNSHARDED]), "whole weight"),
            ({name: LayoutSpec.replicated(MeshSpec([("x", 8)]), 3) for name in layouts()}, "Use the mesh"),
        ),
    ),
    "one_step-moments": Attempts(
        takes_long=True,
        right=(
            centred,
            by_squares,
            tf.function(centred),
            counted_in_python,
            lambda hidden, weights: tf.nn.weighted_moments(hidden, [0], weights),
        ),
        wrong=(
            (lambda hidden, weights: tf.nn.moments(hidden, axes=[0]), "all rows: the padding"),
            (masked, "On one device this is right"),
            (with_variance(lambda h, w, squares: tf.sqrt(mean_of(squares, w))), "standard deviation"),
            (with_variance(lambda h, w, squares: mean_of(h * h, w)), "squared distances"),
            (mean_of, "Two results"),
        ),
    ),
}
