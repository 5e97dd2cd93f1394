"""Attempts at the exercises of `communication`."""

import numpy as np

from course_lib import MeshSpec
from course_lib.devices import dtensor
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.lessons.attempts import Attempts

GRID = MeshSpec([("batch", 4), ("model", 2)])
LETTERS = {".": UNSHARDED, "b": "batch", "m": "model"}
HIDDEN, W1, W2, LOSS = ("model", 6144), ("batch", 3072), ("batch", 1536), ("batch and model", 4)
B1, B2 = ("batch", 192), ("batch", 32)


def relaid(tensor, *ways):
    """Returns a DTensor moved from layout to layout on the grid; "." stands for no mesh dimension."""
    for way in ways:
        layout = LayoutSpec([LETTERS[letter] for letter in way], GRID)
        tensor = dtensor.dtensor.relayout(tensor, dtensor.to_layout(layout))
    return tensor


def asks_for_the_mesh(matrix):
    """Goes the right way, with layouts that no compiled function can make."""
    dtensor.dtensor.fetch_layout(matrix)
    return relaid(matrix, "b.", "bm")


ATTEMPTS = {
    "communication-blocks": Attempts(
        right=(lambda matrix: relaid(matrix, "b.", "bm"), lambda matrix: relaid(matrix, ".b", "b.", "bm")),
        wrong=(
            (lambda matrix: relaid(matrix, "bm"), "come to 1024 bytes: all-reduce over batch, 1024 bytes"),
            (lambda matrix: relaid(matrix, "b."), "it should have [batch, model]"),
            (lambda matrix: relaid(matrix + 1.0, "b.", "bm"), "Does it use its argument"),
            (dtensor.to_numpy, "Return a DTensor"),
            (asks_for_the_mesh, "`dtensor.fetch_layout` fails"),
        ),
    ),
    "communication-residual": Attempts(
        right=(
            [HIDDEN, W1, W2, LOSS, B1, B2],
            ([*LOSS], list(W2), W1, HIDDEN, B1, B2),
            [(("model", "batch"), 4), ("batch", np.int64(1536)), W1, ("model", 6144.0), B1, B2],
            [("batch, model", 4), W1, W2, HIDDEN, B1, B2],
        ),
        wrong=(
            ([W1, W2, ("batch", 4), B1, B2], "Look at the loss"),
            ([("model", 3072), W1, W2, LOSS], "the gradient of `hidden`"),
            ([("model", 2048), W1, W2, LOSS, B1, B2], "a column for each hidden unit"),
            ([HIDDEN, W1, W2, ("batch", 4), ("model", 4), B1, B2], "one collective in place of these two"),
            ([HIDDEN, ("batch", 1536), W2, LOSS], "gradient of `W1`"),
            ([HIDDEN, W1, W1, LOSS, B1, B2], "gradient of `W2`"),
            ([HIDDEN, W1, W2, LOSS], "gradient of `b1`"),
            ([HIDDEN, W1, W2, LOSS, B1, ("batch", 64)], "gradient of `b2`"),
            ([HIDDEN, W1, W2, LOSS, B1, B2, W2], "something more: (batch, 1536)"),
            ([HIDDEN, W1, W2, LOSS, B1, B2, ("model", 8192)], "or which side of the +"),
            ([HIDDEN, LOSS, ("batch", 4832)], "a pair for each gradient"),
            ([HIDDEN, LOSS, ("batch and model", 3072), W2, B1, B2], "the same examples"),
            (["all-reduce over batch, 4 bytes"], "as a pair"),
            ([("hidden", 6144), W1, W2, LOSS], "not over hidden"),
            ([("model", "6144"), W1, W2, LOSS], "a number of bytes"),
        ),
    ),
}
