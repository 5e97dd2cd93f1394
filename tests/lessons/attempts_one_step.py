"""Attempts at the exercises of `one_step`."""

import numpy as np

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
MESH, OTHER = (dtensor.create_mesh([(name, 8)], device_type="CPU") for name in ("batch", "x"))
SPECS = {
    "images": ["batch", WHOLE, WHOLE],
    "labels": ["batch"],
    "gradient": [WHOLE, WHOLE],
    "mean_loss": [],
}


def layouts(**changed):
    return {name: dtensor.Layout(spec, MESH) for name, spec in {**SPECS, **changed}.items()}


def own_gradient(w, x, y):
    return 2 * (x @ w - y) @ x / len(y)


def stacked(copies, xs, ys, learning_rate):
    errors = np.einsum("drf,df->dr", xs, copies) - ys
    return copies - learning_rate * 2 * np.einsum("dr,drf->f", errors, xs) / np.size(ys)


def in_tensorflow(copies, xs, ys, learning_rate):
    with tf.GradientTape() as tape:
        weights = [tf.constant(w) for w in copies]
        tape.watch(weights)
        errors = [tf.linalg.matvec(x, w) - y for w, x, y in zip(weights, xs, ys, strict=True)]
        loss = tf.reduce_mean(tf.stack(errors) ** 2)
    gradient = tf.add_n(tape.gradient(loss, weights))
    return [w - learning_rate * gradient for w in weights]


def in_place(copies, xs, ys, learning_rate):
    gradient = np.mean([own_gradient(*each) for each in zip(copies, xs, ys, strict=True)], axis=0)
    for w in copies:
        np.subtract(w, learning_rate * gradient, out=w)
    return copies


def alone(copies, xs, ys, learning_rate):
    return [w - learning_rate * own_gradient(w, x, y) for w, x, y in zip(copies, xs, ys, strict=True)]


def copies_averaged(copies, xs, ys, learning_rate):
    return [np.mean(alone(copies, xs, ys, learning_rate), axis=0)] * len(copies)


ATTEMPTS = {
    "one_step-layouts": Attempts(
        right=(layouts(),),
        wrong=(
            (layouts(images=[WHOLE, "batch", WHOLE]), "first axis"),
            (layouts(images=["batch", WHOLE]), "3 axes"),
            (layouts(labels=[WHOLE]), "like the images"),
            (layouts(gradient=["batch", WHOLE]), "After the all-reduce"),
            (layouts(mean_loss=["batch"]), "0 axes"),
            ({name: dtensor.Layout.replicated(OTHER, 3) for name in SPECS}, "Use the mesh"),
        ),
    ),
    "one_step-step": Attempts(
        right=(stacked, in_tensorflow, in_place),
        wrong=(
            (alone, "its own gradient"),
            (copies_averaged, "its own copy"),
            (lambda *given: (copy for copy in stacked(*given)), "Return a list"),
        ),
    ),
}
