"""The exercises of lesson 02 on layouts; importing it registers the all-reduces too."""

from __future__ import annotations

import importlib
import math
from typing import Any

from course_lib.exercises.checks import exercise
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs import communication
from course_lib.specs.communication import Communication
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_02_communication import checks_all_reduce  # noqa: F401 - it registers its exercises

_GRID = MeshSpec([("x", 4), ("y", 2)])
_LEFT, _RIGHT = (32, 8), (8, 4)
_MATRIX = (16, 16)
_FROM, _TO = LayoutSpec([UNSHARDED, "x"], _GRID), LayoutSpec(["x", "y"], _GRID)
_LEAST = 192  # bytes sent: one all-to-all of 256 bytes among 4 devices, and the rest is cut for nothing


@exercise(
    "02-free",
    right=(LayoutSpec(["x", UNSHARDED], _GRID), LayoutSpec([UNSHARDED, "y"], _GRID)),
    on_devices=True,
)
def free(answer: tuple[Any, ...]) -> str | None:
    """Layouts of two factors with which eight devices share the work and send nothing."""
    if len(answer) != 2:
        return _("Give two layouts: that of A and that of B.")
    if any(each.mesh != _GRID for each in answer):
        return _("Lay both out on `grid`, with x 4 and y 2.")
    left, right = answer[0].of(_LEFT), answer[1].of(_RIGHT)
    predicted = communication.product(left, right)
    if predicted.collectives:
        return _("With these layouts there is an exchange: {collectives}.", collectives=_listed(predicted))
    work = left.local_shape[0] * left.local_shape[1] * right.local_shape[1]
    whole = math.prod(_LEFT) * _RIGHT[1]
    if work * _GRID.size > whole:
        return _(
            "Nothing is sent, but each device makes {work} multiplications, of {whole} in all: some devices"
            " do the same work.",
            work=work,
            whole=whole,
        )
    with on_devices():
        observed = importlib.import_module("course_lib.observed").product(left, right)
    return None if observed.agrees else _("TensorFlow does something else here: {seen}.", seen=observed)


@exercise("02-via", right=LayoutSpec(["x", UNSHARDED], _GRID), on_devices=True)
def via(answer: LayoutSpec) -> str | None:
    """The layout by way of which a change of layout sends least."""
    if answer.mesh != _GRID:
        return _("The layout must be on `grid`, with x 4 and y 2.")
    legs = [(_FROM.of(_MATRIX), answer), (answer.of(_MATRIX), _TO)]
    predicted = [communication.relayout(*leg) for leg in legs]
    sent = sum(each.bytes_sent for each in predicted)
    if sent > _LEAST:
        listed = _(", ").join(_listed(each) for each in predicted if each.collectives)
        if sent == communication.relayout(_FROM.of(_MATRIX), _TO).bytes_sent:
            return _("By this way a device sends as much as before: {collectives}.", collectives=listed)
        return _("By this way a device sends {sent:g} bytes: {collectives}.", sent=sent, collectives=listed)
    with on_devices():
        observed = importlib.import_module("course_lib.observed")
        compared = [observed.relayout(*leg) for leg in legs]
    wrong = next((each for each in compared if not each.agrees), None)
    return None if wrong is None else _("TensorFlow does something else here: {seen}.", seen=wrong)


def _listed(found: Communication) -> str:
    return _(", ").join(map(str, found.collectives))
