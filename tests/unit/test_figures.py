"""Figures: golden text, and pictures that are sound SVG and say what the text says."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings
from IPython.core.formatters import DisplayFormatter

from course_lib import MeshSpec
from course_lib.pictures import shapes
from course_lib.specs.components import Comparison
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import numbered_tensor
from tests.drawn import SVG, words
from tests.unit.specs import layouts_with_shapes

MESH_3X2 = MeshSpec([("x", 3), ("y", 2)])


def split(whole: np.ndarray, layout: LayoutSpec) -> list[np.ndarray]:
    return [whole[index] for index in layout.of(whole.shape).shards.values()]


@given(layouts_with_shapes())
@settings(max_examples=40, deadline=None)
def test_pictures_are_sound_and_show_each_block_in_its_colour_on_each_holder(case):
    layout, global_shape = case
    whole = numbered_tensor(global_shape)
    drawn = Comparison(layout.of(global_shape), whole, split(whole, layout)).picture()
    root = ElementTree.fromstring(drawn.svg)
    blocks = layout.of(global_shape).blocks
    heads = [path.get("fill") for path in root.iter(f"{SVG}path")]  # of the cards, twice each device
    for number, block in enumerate(blocks[: len(shapes.PALETTE)]):
        same_colour = len(blocks[number :: len(shapes.PALETTE)])
        copies = len(block.devices) * same_colour * 2
        assert heads.count(shapes.PALETTE[number]) == copies
        assert words(root).count(block.label) == 1 + 2 * len(block.devices)


def test_an_object_is_shown_as_its_picture_and_stays_one_line_elsewhere():
    thing = LayoutSpec(["x", UNSHARDED], MESH_3X2).of((6, 4))
    formatter = DisplayFormatter()
    formatter.formatters["image/svg+xml"].enabled = True
    data, metadata = formatter.format(thing)
    picture = thing.picture()
    assert data == {"image/svg+xml": picture.svg, "text/plain": picture.text}
    assert metadata == {"image/svg+xml": {"alt": picture.text}}
    assert repr([thing]) == ("[LayoutSpec(['x', 'unsharded'], MeshSpec([('x', 3), ('y', 2)])).of((6, 4))]")


def test_what_cannot_be_drawn_is_shown_as_a_line_and_the_reason():
    data, metadata = DisplayFormatter().format(LayoutSpec([UNSHARDED] * 4, MESH_3X2).of((1, 2, 3, 4)))
    assert data["text/plain"].endswith(
        ".of((1, 2, 3, 4))\nA tensor of 4 axes cannot be drawn.\n  Allowed: 0 to 3 axes\n  What to do: "
        "Reshape the tensor, or look at it without a picture: layout.of(global_shape).shards."
    )
    assert set(data) == {"text/plain"}
    assert metadata == {}
