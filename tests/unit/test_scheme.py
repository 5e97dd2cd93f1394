"""Schemes: the tensors of a model under a plan, in words and as pictures."""

from __future__ import annotations

from course_lib import MeshSpec
from course_lib.pictures import shapes
from course_lib.specs.plan import Plan, data_parallel
from tests.course import from_lesson
from tests.drawn import elements, words

Scheme = from_lesson("splitting_the_model.scheme", "Scheme")

SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
TENSORS = {
    "x": ("batch", "features"),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "labels": ("batch",),
}


def blocks(scheme: Scheme) -> list[tuple[str, str]]:
    """Returns the colour and the text of each block, in the order of the tensors."""
    groups = elements(scheme, class_="part")
    texts, fills = [" ".join(words(group)) for group in groups], [group[0].get("fill") for group in groups]
    return list(zip(fills, texts, strict=True))


def test_equal_colours_are_the_same_devices_and_what_all_hold_has_none():
    plan = Plan("any", MeshSpec([("x", 2), ("y", 2)]), {"batch": "x", "hidden": "y"})
    shown = blocks(Scheme(plan, TENSORS, SIZES))
    blue, orange, green, yellow = shapes.PALETTE[:4]
    rows = [(blue, "0 1"), (orange, "2 3")]
    columns = [(green, "0 2"), (yellow, "1 3")]
    assert shown == [*rows, *columns, *columns, *rows]
    assert blocks(Scheme(data_parallel(2), {"b1": ("hidden",)}, SIZES)) == [(shapes.EMPTY, "all")]
