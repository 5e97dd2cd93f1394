"""The exercises of lesson 01; importing it registers those of its other modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise, same
from course_lib.exercises.judging import judge
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_01_mesh_and_layout import checks_explore as lesson_01_explore  # noqa: F401 - each registers what it holds
from lessons.lesson_01_mesh_and_layout.checks_split import (
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
    raised_in_packing,
    right_split,
    whole_everywhere,
)

_TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])
_WEIGHT_PART = ((400, 24), 400 * 24 * 4)
_MISSING_BYTES = (8 * 2 - 2 * 2) * 4


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
        return _("This layout splits the columns, and the task asks for the rows.")
    if sharding.copies != 4:
        return _(
            "Under this layout the number of copies is {copies}. Multiply the sizes of unused dimensions.",
            copies=sharding.copies,
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
    packs: list[Exception] = []

    def watched(*inputs: Any) -> Any:
        try:
            made.append(answer(*inputs))
        except Exception as error:
            if raised_in_packing(error):
                packs.append(error)
            raise
        return made[-1]

    found = judge(watched, right_split, cases(), misconceptions=misconceptions())
    if found and packs:
        return _("Cut it yourself, with `np.split`, `tf.split` or slices: here nothing needs to be packed.")
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
    otherwise = _("Which rows of its half of the columns does device 3 hold before, and which not?")
    return _told(answer, _MISSING_BYTES, hints, otherwise)


@exercise(
    "01-weight-part",
    right=_WEIGHT_PART,
    wrong=[
        (((1200, 48), 230400), "whole weight"),
        (((600, 16), 38400), "in the order of the axes"),
        (((400, 48), 76800), "only one axis"),
        (((1200, 24), 115200), "only one axis"),
        (((200, 24), 19200), "batch does not split"),
        (((400, 12), 19200), "batch does not split"),
        (((3, 2), 24), "numbers of parts"),
        (((100, 6), 2400), "Divide each axis"),
        (((400, 24), 9600), "elements. How many bytes"),
        (((400, 24), 230400), "the whole weight takes"),
        (((400, 24), 307200), "in bits"),
        (((400, 24), 12345), "The shape is right"),
        ((38400, (400, 24)), "shape first"),
        ((400, 24, 38400), "shape first"),
        (38400, "tuple or list"),
    ],
)
def weight_part(answer: tuple[Any, ...]) -> str | None:
    """The (400, 24) float32 shard of a weight, and its bytes."""
    if len(answer) != 2 or not isinstance(answer[0], tuple) or isinstance(answer[1], tuple):
        return _("Give two things, the shape first: `((rows, columns), bytes)`.")
    shape, num_bytes = answer
    return _weight_shape(shape) or _weight_bytes(num_bytes)


def _weight_shape(shape: tuple[Any, ...]) -> str | None:
    hints = {
        (1200, 48): _("That is the whole weight. How many parts do feature and model make of it?"),
        (600, 16): _("A layout has its entries in the order of the axes: which one splits the rows?"),
        (400, 48): _("That divides only one axis; the layout splits both."),
        (1200, 24): _("That divides only one axis; the layout splits both."),
        (200, 24): _("The dimension batch does not split the weight: it makes copies of it."),
        (400, 12): _("The dimension batch does not split the weight: it makes copies of it."),
        (3, 2): _("Those are the numbers of parts. How large is one part?"),
    }
    otherwise = _("Divide each axis by the size of the mesh dimension that splits it.")
    return _told(shape, _WEIGHT_PART[0], hints, otherwise)


def _weight_bytes(num_bytes: float) -> str | None:
    right = _WEIGHT_PART[1]
    hints = {
        right // 4: _("That is the number of elements. How many bytes does a float32 take?"),
        right * 6: _("The shape is right, but the whole weight takes these bytes."),
        right * 8: _("That is the size in bits."),
    }
    otherwise = _("The shape is right. Multiply its axes, then count 4 bytes for each element.")
    return _told(num_bytes, right, hints, otherwise)


def _told(answer: object, right: object, hints: Mapping[Any, str], otherwise: str) -> str | None:
    """Returns None for the right answer, the hint of a foreseen wrong one, or else the last text."""
    if same(answer, right):
        return None
    return next((hint for wrong, hint in hints.items() if same(answer, wrong)), otherwise)
