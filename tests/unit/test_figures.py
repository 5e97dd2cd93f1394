"""Figures: golden text, and pictures that are sound SVG and say what the text says."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from course_lib.pictures.figures import Figure, comparison_figure, layout_figure, mesh_figure, observed_figure
from hypothesis import given, settings
from IPython.core.formatters import DisplayFormatter

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.pictures import svg
from course_lib.specs.sharding import assemble, blocks_of, numbered_tensor, verdict
from tests.unit.specs import layouts_with_shapes, meshes

MESH_3X2 = MeshSpec([("x", 3), ("y", 2)])
MESH_2X2X2 = MeshSpec([("x", 2), ("y", 2), ("z", 2)])
ROWS = LayoutSpec(["x", UNSHARDED], MESH_3X2)
SVG_TAG = "{http://www.w3.org/2000/svg}"


def split(whole: np.ndarray, layout: LayoutSpec) -> list[np.ndarray]:
    return [whole[index] for index in layout.shards(whole.shape).values()]


def picture(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.svg)


def texts(figure: Figure) -> list[str]:
    return [element.text for element in picture(figure).iter(f"{SVG_TAG}text")]


def check_text(figure: Figure, golden: str) -> None:
    assert figure.to_text() == golden.strip("\n")
    assert repr(figure) == figure.to_text()


def test_mesh_of_one_dimension():
    check_text(
        mesh_figure(MeshSpec([("batch", 4)])),
        """
Mesh batch 4: 4 devices

  batch=0  batch=1  batch=2  batch=3
        0        1        2        3
""",
    )


def test_mesh_of_three_dimensions():
    check_text(
        mesh_figure(MESH_2X2X2),
        """
Mesh x 2 × y 2 × z 2: 8 devices

  x=0  z=0  z=1
  y=0    0    1
  y=1    2    3

  x=1  z=0  z=1
  y=0    4    5
  y=1    6    7
""",
    )


def test_hybrid_layout():
    check_text(
        layout_figure(ROWS, (6, 4), element_bytes=4),
        """
Layout [x, unsharded] on the mesh x 3 × y 2
Global shape (6, 4), local shape (2, 4). Bytes on each device: 32. Copies of each element: 2.

Tensor
  A  [0:2, 0:4]  devices 0, 1
  B  [2:4, 0:4]  devices 2, 3
  C  [4:6, 0:4]  devices 4, 5

Devices
        y=0   y=1
  x=0  0: A  1: A
  x=1  2: B  3: B
  x=2  4: C  5: C
""",
    )


def test_transposed_layout_of_three_axes():
    check_text(
        layout_figure(LayoutSpec([UNSHARDED, "z", "x"], MESH_2X2X2), (2, 4, 6)),
        """
Layout [unsharded, z, x] on the mesh x 2 × y 2 × z 2
Global shape (2, 4, 6), local shape (2, 2, 3). Copies of each element: 2.

Tensor
  A  [0:2, 0:2, 0:3]  devices 0, 2
  B  [0:2, 0:2, 3:6]  devices 4, 6
  C  [0:2, 2:4, 0:3]  devices 1, 3
  D  [0:2, 2:4, 3:6]  devices 5, 7

Devices
  x=0   z=0   z=1
  y=0  0: A  1: C
  y=1  2: A  3: C

  x=1   z=0   z=1
  y=0  4: B  5: D
  y=1  6: B  7: D
""",
    )


def test_fully_sharded_vector_on_one_dimension():
    check_text(
        layout_figure(LayoutSpec(["batch"], MeshSpec([("batch", 4)])), (1200,), element_bytes=4),
        """
Layout [batch] on the mesh batch 4
Global shape (1200,), local shape (300,). Bytes on each device: 1,200. Copies of each element: 1.

Tensor
  A  [0:300]     device 0
  B  [300:600]   device 1
  C  [600:900]   device 2
  D  [900:1200]  device 3

Devices
  batch=0  batch=1  batch=2  batch=3
     0: A     1: B     2: C     3: D
""",
    )


def test_real_components_with_a_replica_that_differs():
    components = split(numbered_tensor((6, 2)), ROWS)
    components[3] = components[3] + 0.5
    check_text(
        observed_figure(ROWS, components),
        """
Real components with the layout [x, unsharded] on the mesh x 3 × y 2
Global shape (6, 2), local shape (2, 2). Bytes on each device: 16. Copies of each element: 2.

Tensor
  A  [0:2, 0:2]  devices 0, 1  [[0 1] [2 3]]
  B  [2:4, 0:2]  devices 2, 3  [[4 5] [6 7]]
  C  [4:6, 0:2]  devices 4, 5  [[8 9] [10 11]]

Devices
        y=0   y=1
  x=0  0: A  1: A
  x=1  2: B  3: ?
  x=2  4: C  5: C
  Device 3 holds no block: [[4.5 5.5] [6.5 7.5]]
""",
    )


def test_prediction_beside_a_reality_in_which_two_devices_changed_places():
    mesh = MeshSpec([("x", 3)])
    layout = LayoutSpec([UNSHARDED, "x"], mesh)
    whole = numbered_tensor((2, 3))
    first, second, third = split(whole, layout)
    check_text(
        comparison_figure(layout, whole, [first, third, second]),
        """
Prediction and reality: layout [unsharded, x] on the mesh x 3
Global shape (2, 3), local shape (2, 1). Bytes on each device: 8. Copies of each element: 1.

Tensor
  A  [0:2, 0:1]  device 0  [[0] [3]]
  B  [0:2, 1:2]  device 1  [[1] [4]]
  C  [0:2, 2:3]  device 2  [[2] [5]]

Prediction
   x=0   x=1   x=2
  0: A  1: B  2: C

Reality
   x=0   x=1   x=2
  0: A  1: C  2: B

2 of 3 real components differ from the prediction: devices 1, 2.
""",
    )


def test_agreement_is_said_too():
    figure = comparison_figure(ROWS, numbered_tensor((6, 2)), split(numbered_tensor((6, 2)), ROWS))
    assert figure.text.endswith("All 6 real components equal the prediction.")
    assert "✓ All 6 real components equal the prediction." in texts(figure)


@given(layouts_with_shapes())
@settings(max_examples=40)
def test_blocks_tile_the_tensor_and_components_put_it_together_again(case):
    layout, global_shape = case
    whole = numbered_tensor(global_shape)
    blocks = blocks_of(layout, global_shape)
    covered = np.concatenate([whole[block.index].ravel() for block in blocks])
    assert sorted(covered.tolist()) == list(range(whole.size))
    assert sorted(device for block in blocks for device in block.devices) == list(range(layout.mesh.size))
    components = split(whole, layout)
    np.testing.assert_array_equal(assemble(layout, components), whole)
    assert verdict(layout, whole, components).agrees


@given(layouts_with_shapes())
@settings(max_examples=40)
def test_one_changed_element_is_found(case):
    layout, global_shape = case
    components = [np.array(part) for part in split(numbered_tensor(global_shape), layout)]
    components[-1].flat[0] += 0.25
    result = verdict(layout, numbered_tensor(global_shape), components)
    assert not result.agrees
    assert result.holdings[-1] is None
    assert None not in result.holdings[:-1]


def test_equal_values_in_two_blocks_count_as_the_predicted_block():
    assert verdict(ROWS, np.zeros((6, 2)), [np.zeros((2, 2))] * 6).agrees


def test_a_component_of_another_shape_is_wrong_even_if_it_would_broadcast():
    components = [np.zeros((2, 2))] * 5 + [np.zeros((1, 2))]
    assert verdict(ROWS, np.zeros((6, 2)), components).holdings == (0, 0, 1, 1, 2, None)


@given(meshes())
@settings(max_examples=30)
def test_mesh_pictures_name_every_device(mesh):
    shown = texts(mesh_figure(mesh))
    assert all(str(device_id) in shown for device_id in range(mesh.size))


@given(layouts_with_shapes())
@settings(max_examples=40, deadline=None)
def test_pictures_are_sound_and_show_each_block_in_its_colour_on_each_holder(case):
    layout, global_shape = case
    figure = comparison_figure(
        layout, numbered_tensor(global_shape), split(numbered_tensor(global_shape), layout)
    )
    root = picture(figure)
    assert root.get("role") == "img"
    assert root.find(f"{SVG_TAG}title").text == figure.text.splitlines()[0]
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {svg.number(width)} {svg.number(height)}"
    blocks = blocks_of(layout, global_shape)
    heads = [path.get("fill") for path in root.iter(f"{SVG_TAG}path")]  # of the cards, twice each device
    for number, block in enumerate(blocks[: len(svg.PALETTE)]):
        same_colour = len(blocks[number :: len(svg.PALETTE)])
        copies = len(block.devices) * same_colour * 2
        assert heads.count(svg.PALETTE[number]) == copies
        assert texts(figure).count(block.label) == 1 + 2 * len(block.devices)


def test_more_blocks_than_colours_still_have_labels_of_their_own():
    shown = texts(layout_figure(LayoutSpec(["x"], MeshSpec([("x", 30)])), (30,)))
    assert {"A", "Z", "AA", "AD"} <= set(shown)


def test_jupyter_gets_the_picture_with_its_text_as_alternative():
    figure = mesh_figure(MESH_3X2)
    formatter = DisplayFormatter()
    formatter.formatters["image/svg+xml"].enabled = True
    data, metadata = formatter.format(figure, include=["image/svg+xml", "text/plain"])
    assert data == {"image/svg+xml": figure.svg, "text/plain": figure.text}
    assert metadata == {"image/svg+xml": {"alt": figure.text}}


def test_four_axes_cannot_be_drawn():
    with pytest.raises(CourseError) as refusal:
        layout_figure(LayoutSpec.replicated(MESH_3X2, 4), (1, 2, 3, 4))
    assert str(refusal.value) == (
        "A tensor of 4 axes cannot be drawn.\n"
        "  Allowed: 0 to 3 axes\n"
        "  What to do: Reshape the tensor, or look at the layout without a picture: "
        "layout.shards(global_shape)."
    )


@pytest.mark.parametrize(
    "draw", [observed_figure, lambda *args: comparison_figure(args[0], np.zeros((6, 2)), args[1])]
)
def test_another_number_of_components_is_refused(draw):
    with pytest.raises(CourseError, match="5 components were given for a mesh of 6 devices"):
        draw(ROWS, [np.zeros((2, 2))] * 5)


def test_components_of_unlike_shapes_are_refused():
    with pytest.raises(CourseError, match=r"The component of device 1 has the shape \(1, 2\)"):
        observed_figure(ROWS, [np.zeros((2, 2)), np.zeros((1, 2)), *[np.zeros((2, 2))] * 4])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1200, 48), (2, 2, 600)])
def test_extreme_tensors_become_pictures_of_bounded_size(shape):
    figure = layout_figure(LayoutSpec.replicated(MESH_3X2, len(shape)), shape)
    assert float(picture(figure).get("width")) < 760
    assert math.isfinite(float(picture(figure).get("height")))
