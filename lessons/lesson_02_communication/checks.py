"""The exercises of lesson 02; importing it registers those of its other modules."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any

from course_lib.exercises.answers import is_number
from course_lib.exercises.checks import exercise, same
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs import communication
from course_lib.specs.communication import Communication
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_02_communication import checks_all_reduce as lesson_02_all_reduce  # noqa: F401 - each registers what it holds

_GRID = MeshSpec([("x", 4), ("y", 2)])
_LEFT, _RIGHT = (32, 8), (8, 4)
_MATRIX = (16, 16)
_FROM, _TO = LayoutSpec([UNSHARDED, "x"], _GRID), LayoutSpec(["x", "y"], _GRID)
_LEAST = 192  # bytes sent: one all-to-all of 256 bytes among 4 devices, and the rest is cut for nothing
_SUM, _GATHER = ("all-reduce", "y", 128), ("all-gather", "x", 64)
_KINDS = ("all-reduce", "all-gather", "all-to-all")


def _on_grid(rows: str, columns: str) -> LayoutSpec:
    return LayoutSpec([rows, columns], _GRID)


@exercise(
    "02-products",
    right=(_SUM, _GATHER),
    wrong=[
        ((("all-reduce", "y", 512), _GATHER), "whole product"),
        ((("all-reduce", "y", 32), _GATHER), "elements"),
        ((("all-reduce", "y", 256), _GATHER), "divide by"),
        ((("all-reduce", "x", 128), _GATHER), "x splits the rows"),
        ((("all-gather", "y", 128), _GATHER), "partial sum"),
        ((_SUM, ("all-gather", "x", 128)), "columns are split"),
        ((_SUM, ("all-gather", "x", 16)), "brings"),
        ((_SUM, ("all-gather", "x", 48)), "new"),
        ((_SUM, ("all-gather", "x", 1024)), "A or of B"),
        ((_SUM, ("all-gather", "x", 24)), "holds afterwards"),
        ((_SUM, ("all-reduce", "x", 64)), "In product 2: every device has"),
        ((_SUM, ("all-to-all", "x", 64)), "In product 2: every device has"),
        ((_SUM, ("all-gather", "y", 64)), "In product 2: look for the mesh dimension"),
        ((_GATHER, _SUM), "partial sum"),
        ((("All-Reduce", "y", 128), _GATHER), "the kind comes first"),
        (((128, "all-reduce", "y"), _GATHER), "the kind comes first"),
        ((("all-reduce", "z", 128), _GATHER), "x or y"),
        ((("all-reduce", ("y",), 128), _GATHER), "text in quotes"),
        ((("all-reduce", "y", "128"), _GATHER), "as a number"),
        ((_SUM,), "two"),
        ((_SUM, "nothing"), "In place 1"),
        ("all-reduce", "tuple or list"),
    ],
)
def products(answer: tuple[Any, ...]) -> str | None:
    """The collectives of two products, each with its mesh dimension and bytes."""
    if len(answer) != len((_SUM, _GATHER)):
        return _("Give two answers, one for each product.")
    for number, (given, right) in enumerate(zip(answer, (_SUM, _GATHER), strict=True), start=1):
        told: str | None
        if not isinstance(given, tuple) or len(given) != len(right):
            told = _("answer with (kind, mesh dimension, bytes).")
        elif not same(given[0], right[0]):
            told = _kind_hint(number, given[0])
        elif not same(given[1], right[1]):
            told = _dim_hint(number, given[1])
        else:
            told = _bytes_hint(number, given[2])
        if told:
            return _("In product {number}: {told}", number=number, told=told)
    return None


def _kind_hint(number: int, given: object) -> str:
    if given not in _KINDS:
        return _("the kind comes first, one of these: {kinds}.", kinds=_(", ").join(_KINDS))
    if number == 1:
        return _("A and B are split alike along the inner axis. So what a device computes is a partial sum.")
    return _("every device has the whole inner axis of its rows of A. Which rows of B does it lack?")


def _dim_hint(number: int, given: object) -> str:
    if given not in _GRID.names:
        return _("in the middle stands the name of a mesh dimension: x or y.")
    if number == 1:
        return _("x splits the rows of the product. Which mesh dimension splits the axis that is summed?")
    return _("look for the mesh dimension over which the rows of B are split.")


def _bytes_hint(number: int, given: object) -> str | None:
    if not is_number(given):
        return _("the bytes come last, as a number.")
    if number == 1:
        hints = {
            512: _("that is the whole product. A device has some of its rows only."),
            32: _("that is a number of elements; an element has 4 bytes."),
            256: _("divide by the size of the mesh dimension that splits the rows of the product: 4."),
        }
        return _told(given, _SUM[2], hints, _("count the bytes of the part of A @ B that a device holds."))
    hints = {
        128: _("that is all of B, but its columns are split too."),
        16: _("that is what one device brings. Count what it holds afterwards."),
        48: _("that is what is new to a device. Count all that it holds afterwards."),
        1024: _("that is all of A. Is it rows of A or of B that are missing?"),
        256: _("that is its part of A. Is it rows of A or of B that are missing?"),
    }
    return _told(
        given, _GATHER[2], hints, _("count the bytes of the part of B that a device holds afterwards.")
    )


@exercise(
    "02-free",
    right=(_on_grid("x", UNSHARDED), _on_grid(UNSHARDED, "y")),
    also=[(_on_grid("y", UNSHARDED), _on_grid(UNSHARDED, "x"))],
    wrong=[
        ((_on_grid(UNSHARDED, UNSHARDED), _on_grid(UNSHARDED, UNSHARDED)), "1024 multiplications"),
        ((_on_grid("x", UNSHARDED), _on_grid(UNSHARDED, UNSHARDED)), "multiplications"),
        ((_on_grid("x", "y"), _on_grid("y", UNSHARDED)), "all-reduce over y"),
        ((_on_grid("x", UNSHARDED), _on_grid(UNSHARDED, "x")), "all-gather over x"),
        ((_on_grid("x", UNSHARDED), _on_grid("x", UNSHARDED)), "all-gather over x"),
        ((_on_grid(UNSHARDED, "x"), _on_grid("y", UNSHARDED)), "The inner axis is split"),
        (
            (
                LayoutSpec(["x", UNSHARDED], MeshSpec([("x", 8)])),
                LayoutSpec.replicated(MeshSpec([("x", 8)]), 2),
            ),
            "grid",
        ),
        ((_on_grid("x", UNSHARDED),), "two layouts"),
        (_on_grid("x", UNSHARDED), "tuple or list"),
        ((("x", UNSHARDED), (UNSHARDED, "y")), "LayoutSpec"),
    ],
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


@exercise(
    "02-via",
    right=_on_grid("x", UNSHARDED),
    wrong=[
        (_on_grid(UNSHARDED, "x"), "as before"),
        (_on_grid("x", "y"), "as before"),
        (_on_grid(UNSHARDED, UNSHARDED), "as before"),
        (_on_grid("y", "x"), "896"),
        (_on_grid("y", UNSHARDED), "896"),
        (_on_grid(UNSHARDED, "y"), "as before"),
        (LayoutSpec(["x", UNSHARDED], MeshSpec([("x", 8)])), "grid"),
        (LayoutSpec(["x"], _GRID), "axis"),
        (["x", UNSHARDED], "LayoutSpec"),
    ],
    on_devices=True,
)
def via(answer: LayoutSpec) -> str | None:
    """The layout by way of which a change of layout sends least."""
    if answer.mesh != _GRID:
        return _("The layout must be on `grid`, with x 4 and y 2.")
    legs = [(_FROM.of(_MATRIX), answer), (answer.of(_MATRIX), _TO)]
    predicted = [communication.relayout(*leg) for leg in legs]
    sent, direct = (sum(each.bytes_sent for each in way) for way in (predicted, [_direct()]))
    if sent > _LEAST:
        listed = _(", ").join(_listed(each) for each in predicted if each.collectives)
        if sent == direct:
            return _("By this way a device sends as much as before: {collectives}.", collectives=listed)
        return _("By this way a device sends {sent:g} bytes: {collectives}.", sent=sent, collectives=listed)
    with on_devices():
        observed = importlib.import_module("course_lib.observed")
        compared = [observed.relayout(*leg) for leg in legs]
    wrong = next((each for each in compared if not each.agrees), None)
    return None if wrong is None else _("TensorFlow does something else here: {seen}.", seen=wrong)


def _direct() -> Communication:
    return communication.relayout(_FROM.of(_MATRIX), _TO)


def _listed(found: Communication) -> str:
    return _(", ").join(map(str, found.collectives))


def _told(answer: object, right: object, hints: Mapping[Any, str], otherwise: str) -> str | None:
    """Returns None for the right answer, the hint of a foreseen wrong one, or else the last text."""
    if same(answer, right):
        return None
    return next((hint for wrong, hint in hints.items() if same(answer, wrong)), otherwise)
