"""Predicted collectives: the reason of each, and what is refused. That TensorFlow runs them: tests/tf."""

import pytest

from course_lib import CourseError, MeshSpec
from course_lib.specs.collectives import Collective, Kind, require_right
from course_lib.specs.communication import product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED

MESH = MeshSpec([("x", 4), ("y", 2)])


def layout(entries: str) -> LayoutSpec:
    """Returns a layout of two letters, such as "x." for [x, unsharded]."""
    return LayoutSpec([UNSHARDED if entry == "." else entry for entry in entries], MESH)


@pytest.mark.parametrize(
    ("left", "right", "wanted", "told"),
    [
        (".x", "..", None, "W inner, x @ W partial sum all-reduce"),
        ("x.", ".x", None, "x rows like columns all-gather, x @ W output all-gather"),
        ("x.", ".x", ".x", "x rows like columns all-gather"),
        ("x.", ".x", "x.", "W rows wanted all-gather"),
        ("x.", "xy", None, "W rows like rows all-gather"),
        ("yx", ".x", None, "x columns like columns all-gather"),
        ("y.", "x.", "yx", "x inner, x @ W partial sum all-reduce, x @ W wanted"),
        ("..", "..", "xy", "x wanted, W wanted"),
        ("x.", "..", ".x", "x @ W move all-to-all"),
        ("x.", ".y", "..", "x @ W gather all-gather"),
        ("x.", "..", "yx", "x @ W gather all-gather, x @ W cut"),
    ],
)
def test_each_change_says_why(left, right, wanted, told):
    found = product(layout(left).of((16, 32)), layout(right).of((32, 64)), wanted and layout(wanted))
    steps = [(step.tensor, step.rule, step.collective and step.collective.kind) for step in found.steps]
    assert ", ".join(" ".join(filter(None, step)) for step in steps) == told


WIDE = MeshSpec([("x", 2), ("y", 2), ("z", 2)])


@pytest.mark.parametrize(
    ("wanted", "others"), [("y.", "'y'"), (".z", "'z'"), ("xy", "'y'"), ("zx", "'z'"), ("yz", "'y', 'z'")]
)
def test_a_product_is_refused_where_its_reader_wants_another_split(wanted, others):
    rows, columns = (LayoutSpec(entries, WIDE).of((8, 8)) for entries in (["x", "y"], ["y", "x"]))
    target = LayoutSpec([UNSHARDED if entry == "." else entry for entry in wanted], WIDE)
    with pytest.raises(CourseError) as refused:
        product(rows, columns, target)
    assert refused.value.problem == (
        "'x' splits the rows of the first matrix and the columns of the second; the product is wanted as"
        f" {target}, split over {others}."
    )
    assert refused.value.allowed == "[unsharded, unsharded], [x, unsharded], [unsharded, x]"


@pytest.mark.parametrize(
    ("left", "right", "wanted", "says"),
    [
        (layout("x.").of((8, 4)), layout("..").of((8, 4)), None, r"\(8, 4\) cannot be multiplied by"),
        (layout(".x").of((8, 8)), layout("y.").of((8, 8)), None, "split over x in one factor and over y"),
    ],
)
def test_factors_and_readers_that_do_not_fit_are_refused(left, right, wanted, says):
    with pytest.raises(CourseError, match=says):
        product(left, right, wanted)


def test_all_to_alls_among_many_cpus_are_refused_and_nothing_else():
    eleven, twelve = (MeshSpec([("x", devices)]) for devices in (11, 12))
    require_right([Collective(Kind.ALL_TO_ALL, eleven, ("x",), 44)], "CPU")
    require_right([Collective(Kind.ALL_TO_ALL, twelve, ("x",), 48)], "GPU")
    require_right([Collective(Kind.ALL_GATHER, twelve, ("x",), 48)], "CPU")
    with pytest.raises(CourseError, match="an all-to-all over 'x', among 12 CPUs"):
        require_right([Collective(Kind.ALL_TO_ALL, twelve, ("x",), 48)], "CPU")
