"""The exercise of this lesson on needless exchanges; importing it registers the all-reduces too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.communication import checks_all_reduce  # noqa: F401 - it registers its exercises

_GRID = MeshSpec([("x", 4), ("y", 2)])
_FROM, _TO = LayoutSpec([UNSHARDED, "x"], _GRID), LayoutSpec(["x", "y"], _GRID)
_SHAPE = (16, 16)
_LEAST = 192  # bytes sent: one all-to-all of 256 bytes among 4 devices, and the rest is cut for nothing


def _by_rows(matrix: Any) -> Any:
    """Returns the matrix in blocks, by way of its rows over `x`."""
    with on_devices() as (_tf, dtensor):
        for layout in (LayoutSpec(["x", UNSHARDED], _GRID), _TO):
            matrix = dtensor.dtensor.relayout(matrix, dtensor.to_layout(layout))
    return matrix


@exercise("communication-blocks", right=_by_rows, on_devices=True)
def in_blocks(answer: Callable[..., Any]) -> str | None:
    """A change of layout by way of another one, in which a device sends least."""
    values = np.random.default_rng(2).permutation(np.arange(256, dtype=np.float32)).reshape(_SHAPE)
    with on_devices() as (tf, dtensor):
        matrix = dtensor.pack(values, _FROM)
        try:
            moved = answered(answer(matrix))
        except tf.errors.UnknownError:  # of TensorFlow's compiler
            return _("TensorFlow cannot move it so. Is every layout on the way one on `grid`?")
        if not (tf.is_tensor(moved) and dtensor.dtensor.is_dtensor(moved)):
            return _("Return a DTensor: `dtensor.relayout` gives one.")
        layout = dtensor.fetch_layout(moved)
        if layout != _TO:
            return _(
                "The result has the layout {layout}; it should have {target}.", layout=layout, target=_TO
            )
        if not np.array_equal(dtensor.to_numpy(moved), values):
            return _("The layout is right, but the values are not those of the matrix.")
        from course_lib.devices.graphs import collectives

        try:
            ran = collectives(answer, matrix)
        except (AttributeError, NotImplementedError, RuntimeError):  # a traced tensor has no values
            return _(
                "The check compiles your function, and then `dtensor.fetch_layout`, `dtensor.unpack` and"
                " `.numpy()` do not work. Use `dtensor.relayout` and `grid` alone."
            )
    sent = sum(each.bytes_sent for each in ran)
    if sent > _LEAST:
        return _(
            "The values are right, but a device sends {sent:g} bytes: {collectives}. {least} are enough.",
            sent=float(sent),
            collectives=_(", ").join(map(str, ran)),
            least=_LEAST,
        )
    return None
