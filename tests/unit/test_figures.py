"""Figures: how objects are shown, what colours and frames say. Their texts: test_golden_pictures."""

from __future__ import annotations

from hypothesis import given, settings
from IPython.core.formatters import DisplayFormatter

from course_lib import MeshSpec
from course_lib.pictures import shapes
from course_lib.specs.components import Comparison
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Plan, data_parallel
from course_lib.specs.sharding import numbered_tensor
from lessons.layouts.scheme import Scheme
from lessons.strategies.global_batches import ReceivedExamples
from tests.drawn import SVG, elements, tree, words
from tests.unit.specs import layouts_with_shapes

MESH_3X2 = MeshSpec([("x", 3), ("y", 2)])


@given(layouts_with_shapes())
@settings(max_examples=40, deadline=None)
def test_pictures_are_sound_and_show_each_block_in_its_colour_on_each_holder(case):
    layout, global_shape = case
    whole = numbered_tensor(global_shape)
    sharding = layout.of(global_shape)
    root = tree(Comparison(sharding, whole, sharding.split(whole)))
    blocks = sharding.blocks
    heads = [path.get("fill") for path in root.iter(f"{SVG}path")]  # of the cards, twice each device
    for number, block in enumerate(blocks[: len(shapes.PALETTE)]):
        same_colour = len(blocks[number :: len(shapes.PALETTE)])
        copies = len(block.devices) * same_colour * 2
        assert heads.count(shapes.PALETTE[number]) == copies
        assert words(root).count(block.label) == 1 + 2 * len(block.devices)


def test_what_cannot_be_drawn_is_shown_as_a_line_and_the_reason():
    data, metadata = DisplayFormatter().format(LayoutSpec([UNSHARDED] * 4, MESH_3X2).of((1, 2, 3, 4)))
    assert data["text/plain"].endswith(
        ".of((1, 2, 3, 4))\nA tensor of 4 axes cannot be drawn.\n  Allowed: 0 to 3 axes\n  What to do: "
        "Reshape the tensor, or look at it without a picture: layout.of(global_shape).shards."
    )
    assert set(data) == {"text/plain"}
    assert metadata == {}


# Schemes and parts of data sets

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


def test_equal_colours_are_equal_data_and_what_all_hold_has_none():
    plan = Plan("any", MeshSpec([("x", 2), ("y", 2)]), {"batch": "x", "hidden": "y"})
    shown = blocks(Scheme(plan, TENSORS, SIZES))
    assert [text for _fill, text in shown] == ["0 1", "2 3", "0 2", "1 3", "0 2", "1 3", "0 1", "2 3"]
    assert [fill for fill, _text in shown] == list(shapes.PALETTE[:8])
    assert blocks(Scheme(data_parallel(2), {"b1": ("hidden",)}, SIZES)) == [(shapes.EMPTY, "all")]


def test_an_empty_part_is_dashed_and_what_came_twice_has_a_thick_frame():
    parts = elements(ReceivedExamples([[[0, 1], [1, 2]], [[3], []]]), "rect", "part")
    assert [each.get("stroke-width") for each in parts] == ["3", "3", "1", "1"]
    assert [each.get("stroke-dasharray") for each in parts] == [None, None, None, "3 3"]
