"""The product explorer: what it shows, its button, its table for pages."""

from __future__ import annotations

from course_lib import MeshSpec
from course_lib.specs.communication import product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.course import from_lesson
from tests.explored import choose, pieces, ran_as_predicted, shown, text_of

ProductExplorer, communication_of = from_lesson(
    "communication.product_explorer", "ProductExplorer", "communication_of"
)

GRID = MeshSpec([("x", 4), ("y", 2)])


def headings(explorer) -> list[str]:
    return [text_of(panel[2]) for panel in pieces(explorer.view, "panel")]


def test_the_first_view_shows_a_partial_sum():
    explorer = ProductExplorer()
    assert shown(explorer, "fact") == [
        "Layout of AB[unsharded, unsharded]",
        "Collectives1",
        "Bytes sent by each device2,688",
    ]
    assert headings(explorer) == [
        "Factors and product",
        "Block of each device",
        "1. AB: partial sums [unsharded, unsharded] → sums",
    ]
    assert len(list(pieces(explorer.view, "partial"))) == 1
    assert len(list(pieces(explorer.view, "member"))) == 8
    assert shown(explorer, "told") == ["1 collective; each device sends 2,688 bytes."]


def test_the_reader_sets_mesh_layouts_and_what_reads_the_product():
    explorer = ProductExplorer()
    choose(explorer, "left", 0, "x")
    choose(explorer, "left", 1, UNSHARDED)
    choose(explorer, "right", 0, UNSHARDED)
    choose(explorer, "right", 1, "x")
    assert headings(explorer)[2:] == [
        "1. A: [x, unsharded] → [unsharded, unsharded]",
        "2. AB: [unsharded, x] → [unsharded, unsharded]",
    ]
    choose(explorer, "wanted", [UNSHARDED, UNSHARDED])
    choose(explorer, "wanted", 1, "x")
    assert headings(explorer)[2:] == ["1. A: [x, unsharded] → [unsharded, unsharded]"]
    choose(explorer, "mesh", [["x", 4], ["y", 2]])
    left, right = LayoutSpec(["x", UNSHARDED], GRID), LayoutSpec([UNSHARDED, "x"], GRID)
    assert communication_of(explorer.state) == product(left.of((16, 8)), right.of((8, 24)), right)
    choose(explorer, "right", 1, "y")
    choose(explorer, "mesh", [["x", 8]])
    assert communication_of(explorer.state).operands[1].layout.sharding_specs == (UNSHARDED, UNSHARDED)


def test_illegal_choices_say_why_and_disable_the_button():
    explorer = ProductExplorer(ran_as_predicted)
    choose(explorer, "mesh", [["x", 4], ["y", 2]])
    choose(explorer, "right", 0, "y")
    (why,) = shown(explorer, "refusal")
    assert "The inner axis is split over x in one factor and over y in the other." in why
    assert "disabled" in next(pieces(explorer.view, "press"))[1]
    choose(explorer, "right", 0, "x")
    assert shown(explorer, "refusal") == []
    choose(explorer, "left", 0, "x")
    assert "The mesh dimension 'x' splits two axes." in shown(explorer, "refusal")[0]
    assert "splits two axes" in repr(explorer)
