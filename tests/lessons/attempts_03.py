"""Attempts at the exercises of lesson 03."""

import numpy as np

import course_lib
from course_lib import UNSHARDED, LayoutSpec, MeshSpec
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


def centred(hidden, weights, divisor=tf.reduce_sum, variance_weights=lambda weights: weights):
    mean = tf.reduce_sum(weights * hidden, axis=0) / divisor(weights)
    counted = variance_weights(weights)
    return mean, tf.reduce_sum(counted * (hidden - mean) ** 2, axis=0) / divisor(counted)


def by_squares(hidden, weights):
    count = tf.reduce_sum(weights)
    mean = tf.reduce_sum(weights * hidden, axis=0) / count
    return mean, tf.reduce_sum(weights * hidden * hidden, axis=0) / count - mean * mean


def by_products(hidden, weights):
    share = tf.transpose(weights) / tf.reduce_sum(weights)
    mean = tf.squeeze(share @ hidden, axis=0)
    return [mean, tf.squeeze(share @ (hidden - mean) ** 2, axis=0)]


def number_of_rows(weights):
    return float(weights.shape[0])


ATTEMPTS = {
    "03-layouts": Attempts(
        right=(REAL, layouts()),
        wrong=(
            (layouts(images=[UNSHARDED, "batch", UNSHARDED]), "first axis"),
            (layouts(images=["batch", UNSHARDED]), "3 axes"),
            (layouts(labels=[UNSHARDED]), "like the images"),
            (layouts(losses=[UNSHARDED]), "its own images"),
            (layouts(gradient=["batch", UNSHARDED]), "whole weight"),
            ({**REAL, "gradient": REAL["images"].delete([2])}, "whole weight"),
            ({"images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], MESH)}, "labels"),
            ({name: LayoutSpec.replicated(MeshSpec([("x", 8)]), 3) for name in layouts()}, "`mesh`"),
        ),
    ),
    "03-moments": Attempts(
        right=(
            centred,
            by_squares,
            by_products,
            tf.function(centred),
            lambda hidden, weights: tf.nn.weighted_moments(hidden, [0], weights),
        ),
        wrong=(
            (lambda hidden, weights: tf.nn.moments(hidden, axes=[0]), "all rows"),
            (lambda hidden, weights: tf.nn.moments(weights * hidden, axes=[0]), "How many of them count"),
            (lambda hidden, weights: centred(hidden, weights, number_of_rows), "How many of them count"),
            (
                lambda hidden, weights: centred(hidden, weights, variance_weights=tf.ones_like),
                "In the variance",
            ),
            (
                lambda hidden, weights: (
                    centred(hidden, weights)[0],
                    tf.sqrt(centred(hidden, weights)[1]),
                ),
                "standard deviation",
            ),
            (lambda hidden, weights: (0 * hidden[0], 0 * hidden[0]), "Error"),
            (lambda hidden, weights: (centred(hidden, weights)[0],) * 2, "as its weight says"),
            (lambda hidden, weights: centred(hidden, weights)[0], "as its weight says"),
            (lambda hidden, weights: np.mean(hidden, axis=0), "Error"),
            (lambda hidden, weights: None, "return"),
            (0.5, "function"),
        ),
    ),
}
