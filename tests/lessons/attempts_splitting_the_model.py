"""Attempts at the exercises of `splitting_the_model`."""

import numpy as np

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
NARROW, OTHER = (
    dtensor.create_mesh(dims, device_type="CPU")
    for dims in ([("batch", 2), ("model", 4)], [("batch", 4), ("model", 2)])
)
ROWS, COLUMNS = ["model", WHOLE], [WHOLE, "model"]
SPECS = {"x": ["batch", "model"], "U1": ROWS, "D1": COLUMNS, "U2": ROWS, "D2": COLUMNS}


def layouts(mesh=NARROW, **changed):
    return {name: dtensor.Layout(spec, mesh) for name, spec in {**SPECS, **changed}.items()}


def in_tensorflow(*own):
    x, w1, b1, w2, b2, add_up = own
    partial = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2)
    return tf.constant(add_up(partial)) + b2


def bias_shared_out(*own):
    x, w1, b1, w2, b2, add_up = own
    devices = add_up(np.ones(1))[0]
    return add_up(np.maximum(x @ w1 + b1, 0) @ w2 + b2 / devices)


def bias_in_place(*own):
    x, w1, b1, w2, b2, add_up = own
    logits = add_up(np.maximum(x @ w1 + b1, 0) @ w2)
    logits += b2
    return logits


def number_by_number(*own):
    x, w1, b1, w2, b2, add_up = own
    partial = np.maximum(x @ w1 + b1, 0) @ w2
    return np.array([[add_up(each / 2) + add_up(each / 2) for each in row] for row in partial]) + b2


def nothing(*own):
    bias_in_place(*own)


def bias_first(*own):
    x, w1, b1, w2, b2, add_up = own
    return add_up(np.maximum(x @ w1 + b1, 0) @ w2 + b2)


def averaged(*own):
    x, w1, b1, w2, b2, add_up = own
    return add_up(np.maximum(x @ w1 + b1, 0) @ w2) / 2 + b2


ATTEMPTS = {
    "splitting_the_model-logits": Attempts(
        right=(in_tensorflow, bias_shared_out, bias_in_place, number_by_number),
        wrong=(
            (bias_first, "several times"),
            (averaged, "of the whole arrays"),
            (nothing, "Is a `return` missing"),
        ),
    ),
    "splitting_the_model-narrow": Attempts(
        right=(dict(reversed(layouts().items())),),
        wrong=(
            (
                layouts(x=["batch", WHOLE], U1=COLUMNS, D1=ROWS, U2=COLUMNS, D2=ROWS),
                "114,692. A split of the hidden units",
            ),
            (layouts(x=["batch", WHOLE]), "131,076. The rows of `U1`"),
            (layouts(U1=COLUMNS, D1=ROWS, U2=COLUMNS, D2=ROWS), "315,396. The rows of `U1`"),
            (layouts(U2=COLUMNS, D2=ROWS), "Is the stream split in the same way"),
            (
                layouts(U1=["model", "batch"], U2=["model", "batch"]),
                "151,556. Weights that are split over `batch`",
            ),
            (layouts(D1=[WHOLE, WHOLE]), "more than a quarter of 'D1'"),
            (layouts(x=[WHOLE, "model"]), "Split them over `batch`"),
            (layouts(U1=["batch", "model"]), "TensorFlow refuses"),
            (layouts(U1=["model"]), "has 2 axes"),
            (layouts(OTHER), "Use the mesh"),
        ),
        takes_long=True,
    ),
}
