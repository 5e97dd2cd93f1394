"""The exercises of lesson 01, and by an import its predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib.exercises import lesson_01_predictions as _predictions  # noqa: F401 - registers them
from course_lib.exercises.checks import exercise, refusal, same
from course_lib.exercises.judging import judge
from course_lib.exercises.lesson_01_split import (
    Split,
    by_device_number,
    cases,
    cut_by_mesh_shape,
    each_block_once,
    every_nth,
    first_axis_only,
    first_dim_fastest,
    misconceptions,
    part_by_part,
    right_split,
    whole_everywhere,
)
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding

_TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])
_WEIGHT_BYTES = 1200 * 48 * 4
_MISSING_BYTES = (8 * 2 - 2 * 2) * 4
_EIGHT = MeshSpec([("x", 2), ("y", 4)])
_UNTOUCHED = LayoutSpec(["x", UNSHARDED], _EIGHT).of((8, 6))


@exercise(
    "01-four-copies",
    right=LayoutSpec(["batch", UNSHARDED], _TWO_BY_FOUR),
    wrong=[
        (LayoutSpec(["model", UNSHARDED], _TWO_BY_FOUR), "copies is 2"),
        (LayoutSpec([UNSHARDED, "batch"], _TWO_BY_FOUR), "splits the columns"),
        (LayoutSpec(["batch", "model"], _TWO_BY_FOUR), "splits the columns"),
        (LayoutSpec.replicated(_TWO_BY_FOUR, 2), "copies is 8"),
        (LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])), "exercise_mesh"),
        (LayoutSpec(["batch"], _TWO_BY_FOUR), "1 axis"),
        (["batch", UNSHARDED], "LayoutSpec"),
    ],
)
def four_copies(answer: LayoutSpec) -> str | None:
    """A layout that splits the rows and leaves four copies."""
    if answer.mesh != _TWO_BY_FOUR:
        return _("Use exercise_mesh: its dimensions are batch 2 and model 4.")
    sharding = answer.of((8, 8))
    if sharding.local_shape[1] != 8:
        return _("This layout splits the columns. Leave them whole.")
    if sharding.copies != 4:
        return _(
            "Under this layout the number of copies is {copies}. Multiply the sizes of unused dimensions.",
            copies=sharding.copies,
        )
    return None


@exercise(
    "01-explore-two-copies",
    right=LayoutSpec(["y", UNSHARDED], _EIGHT).of((8, 6)),
    also=[
        LayoutSpec(["x", UNSHARDED], MeshSpec([("x", 4), ("y", 2)])).of((8, 6)),
        LayoutSpec(["z", "x"], MeshSpec([("x", 2), ("y", 2), ("z", 2)])).of((8, 6)),
    ],
    unanswered=_UNTOUCHED,
    wrong=[
        (LayoutSpec([UNSHARDED, "x"], _EIGHT).of((8, 6)), "4 devices hold each element"),
        (LayoutSpec(["y", "x"], _EIGHT).of((8, 6)), "1 device holds each element"),
        (LayoutSpec([UNSHARDED, "y"], _EIGHT).of((8, 4)), "(8, 4)"),
        (LayoutSpec(["x", UNSHARDED], MeshSpec([("x", 2), ("y", 2)])).of((8, 6)), "has 4 devices"),
        (refusal(LayoutSpec([UNSHARDED, "y"], _EIGHT).of, (8, 6)), "refuses"),
        ("[y, unsharded]", "explorer itself"),
    ],
)
def two_copies(answer: Sharding) -> str | None:
    """A choice in which two devices hold each element."""
    return _explored(answer, copies=2)


@exercise(
    "01-explore-one-copy",
    right=LayoutSpec(["y", "x"], _EIGHT).of((8, 6)),
    also=[
        LayoutSpec(["x", UNSHARDED], MeshSpec([("x", 8)])).of((8, 6)),
        LayoutSpec(["x", "y"], MeshSpec([("x", 4), ("y", 2)])).of((8, 6)),
    ],
    unanswered=_UNTOUCHED,
    wrong=[
        (LayoutSpec(["y", UNSHARDED], _EIGHT).of((8, 6)), "2 devices hold each element"),
        (LayoutSpec([UNSHARDED, UNSHARDED], _EIGHT).of((8, 6)), "8 devices hold each element"),
        (LayoutSpec(["x", "y"], _EIGHT).of((8, 8)), "(8, 8)"),
        (LayoutSpec(["x", "y"], MeshSpec([("x", 2), ("y", 3)])).of((8, 6)), "has 6 devices"),
        (refusal(LayoutSpec(["x", "y"], _EIGHT).of, (8, 6)), "refuses"),
        (8, "explorer itself"),
    ],
)
def one_copy(answer: Sharding) -> str | None:
    """A choice in which each element is held once."""
    return _explored(answer, copies=1)


def _explored(chosen: Sharding, copies: int) -> str | None:
    if chosen.global_shape != (8, 6):
        return _(
            "The tensor in the explorer has the shape {shape}. Set it to (8, 6).", shape=chosen.global_shape
        )
    if chosen.mesh.size != 8:
        return ngettext(
            "The mesh in the explorer has {count} device; it needs 8.",
            "The mesh in the explorer has {count} devices; it needs 8.",
            chosen.mesh.size,
        )
    if chosen.copies != copies:
        return ngettext(
            "Now {count} device holds each element. Mesh dimensions that cut no axis make copies.",
            "Now {count} devices hold each element. Mesh dimensions that cut no axis make copies.",
            chosen.copies,
        )
    return None


@exercise(
    "01-split",
    right=right_split,
    wrong=[
        (cut_by_mesh_shape, "num_shards"),
        (each_block_once, "Give every device"),
        (first_axis_only, "first axis only"),
        (first_dim_fastest, "column by column"),
        (by_device_number, "by the number of the device"),
        (every_nth, "next to each other"),
        (whole_everywhere, "every device the whole"),
        (lambda whole, layout: np.array_split(whole, layout.mesh.size), "your function"),
        (lambda whole, layout: whole[layout.shape], "fails for"),
        (part_by_part, "Return a list"),
        (lambda whole, layout: dict(enumerate(right_split(whole, layout))), "not a dict"),
        (lambda whole, layout: map(np.copy, right_split(whole, layout)), "Return a list"),
        (lambda whole, layout: (part for part in right_split(whole, layout)), "Return a list"),
        ([[0, 1], [2, 3]], "function"),
    ],
)
def split(answer: Split) -> str | None:
    """A function that cuts a tensor into the components of a layout."""
    made: list[Any] = []

    def watched(*inputs: Any) -> Any:
        made.append(answer(*inputs))
        return made[-1]

    found = judge(watched, right_split, cases(), misconceptions=misconceptions())
    if any(isinstance(each, dict) for each in made):
        return _("Return a list, not a dict.")
    if any(isinstance(each, Iterator) for each in made):  # a generator or a map, which shows no parts
        return _("Your function yields the components one by one. Return a list of them.")
    return found


@exercise(
    "01-missing-bytes",
    right=_MISSING_BYTES,
    wrong=[
        (64, "holds afterwards"),
        (32, "holds before"),
        (16, "holds already"),
        (12, "about bytes"),
        (96, "half of the columns only"),
        (192, "4 bytes, not 8"),
        (0, "which not"),
        (_MISSING_BYTES * 8, "which not"),
        ("a third", "number"),
    ],
)
def missing_bytes(answer: float) -> str | None:
    """The bytes that device 3 lacks when rows over x become columns over y."""
    hints = {
        64: _("That is all that device 3 holds afterwards. Some of it is there already."),
        32: _(
            "32 is what it holds before, and also 64 - 32. Not all it held is in its half of the columns:"
            " count only what is new."
        ),
        16: _("That is what it holds already of its half of the columns."),
        12: _("That is a number of elements; the question is about bytes."),
        96: _(
            "That is all of the matrix that it does not hold; it needs its half of the columns only."
            " Or did you count 8 bytes an element? These have 4."
        ),
        192: _("An element has 4 bytes, not 8; and device 3 needs its half of the columns only."),
    }
    if same(answer, _MISSING_BYTES):
        return None
    found = next((hint for wrong, hint in hints.items() if same(answer, wrong)), None)
    return found or _("Which rows of its half of the columns does device 3 hold before, and which not?")


@exercise(
    "01-weight-bytes",
    right=_WEIGHT_BYTES // 6,
    wrong=[
        (_WEIGHT_BYTES, "whole weight"),
        (_WEIGHT_BYTES // 4, "elements of the whole weight"),
        (_WEIGHT_BYTES // 2, "only one axis"),
        (_WEIGHT_BYTES // 3, "only one axis"),
        (_WEIGHT_BYTES // 12, "batch does not split"),
        (_WEIGHT_BYTES // 24, "elements. How many bytes"),
        (12345, "local shape first"),
        (_WEIGHT_BYTES // 6 * 8, "in bits"),
        ((400, 24), "number"),
    ],
)
def weight_bytes(answer: float) -> str | None:
    """The bytes of a (400, 24) float32 shard."""
    hints = {
        _WEIGHT_BYTES: _("That is the whole weight. How many parts do feature and model make of it?"),
        _WEIGHT_BYTES // 4: _(
            "That is the number of elements of the whole weight. If you divided its bytes by 4:"
            " which two mesh dimensions does the layout use?"
        ),
        _WEIGHT_BYTES // 2: _("That divides only one axis; the layout splits both."),
        _WEIGHT_BYTES // 3: _("That divides only one axis; the layout splits both."),
        _WEIGHT_BYTES // 12: _("The dimension batch does not split the weight: it makes copies of it."),
        _WEIGHT_BYTES // 24: _("That is the number of elements. How many bytes does a float32 take?"),
        _WEIGHT_BYTES // 6 * 8: _("That is the size in bits."),
    }
    for wrong, hint in hints.items():
        if same(answer, wrong):
            return hint
    if not same(answer, _WEIGHT_BYTES // 6):
        return _("Find the local shape first, multiply its axes, then count 4 bytes for each element.")
    return None
