"""Exercises 01-explore-…: choices that the reader makes in the explorer."""

from __future__ import annotations

from course_lib.exercises.checks import exercise, refusal
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding

_EIGHT = MeshSpec([("x", 2), ("y", 4)])
_UNTOUCHED = LayoutSpec(["x", UNSHARDED], _EIGHT).of((8, 6))


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
