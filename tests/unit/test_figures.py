"""Figures: golden text, and pictures that are sound SVG and say what the text says."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from IPython.core.formatters import DisplayFormatter

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.pictures import shapes
from course_lib.pictures.figures import Figure, figure
from course_lib.specs.sharding import numbered_tensor
from tests.unit.specs import layouts_with_shapes, meshes

ROOT = Path(__file__).resolve().parents[2]
MESH_3X2 = MeshSpec([("x", 3), ("y", 2)])
MESH_2X2X2 = MeshSpec([("x", 2), ("y", 2), ("z", 2)])
ROWS = LayoutSpec(["x", UNSHARDED], MESH_3X2)
SVG_TAG = "{http://www.w3.org/2000/svg}"


def split(whole: np.ndarray, layout: LayoutSpec) -> list[np.ndarray]:
    return [whole[index] for index in layout.of(whole.shape).shards.values()]


def picture(drawn: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(drawn.svg)


def texts(drawn: Figure) -> list[str]:
    return [element.text for element in picture(drawn).iter(f"{SVG_TAG}text")]


def check_text(drawn: Figure, golden: str) -> None:
    assert drawn.text == golden.strip("\n")
    assert repr(drawn) == drawn.text


def test_mesh_of_one_dimension():
    check_text(
        figure(MeshSpec([("batch", 4)])),
        """
Mesh batch 4: 4 devices

  batch=0  batch=1  batch=2  batch=3
        0        1        2        3
""",
    )


def test_mesh_of_three_dimensions():
    check_text(
        figure(MESH_2X2X2),
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
        figure(ROWS.of((6, 4), element_bytes=4)),
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
        figure(LayoutSpec([UNSHARDED, "z", "x"], MESH_2X2X2).of((2, 4, 6))),
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
        figure(LayoutSpec(["batch"], MeshSpec([("batch", 4)])).of((1200,), element_bytes=4)),
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
        figure(ROWS.observed(components)),
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
        figure(layout.of((2, 3)).compare(whole, [first, third, second])),
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
    drawn = figure(ROWS.of((6, 2)).compare(numbered_tensor((6, 2)), split(numbered_tensor((6, 2)), ROWS)))
    assert drawn.text.endswith("All 6 real components equal the prediction.")
    assert "✓ All 6 real components equal the prediction." in texts(drawn)


@given(meshes())
@settings(max_examples=30)
def test_mesh_pictures_name_every_device(mesh):
    shown = texts(figure(mesh))
    assert all(str(device_id) in shown for device_id in range(mesh.size))


@given(layouts_with_shapes())
@settings(max_examples=40, deadline=None)
def test_pictures_are_sound_and_show_each_block_in_its_colour_on_each_holder(case):
    layout, global_shape = case
    whole = numbered_tensor(global_shape)
    drawn = figure(layout.of(global_shape).compare(whole, split(whole, layout)))
    root = picture(drawn)
    assert root.get("role") == "img"
    assert root.find(f"{SVG_TAG}title").text == drawn.text.splitlines()[0]
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {shapes.number(width)} {shapes.number(height)}"
    blocks = layout.of(global_shape).blocks
    heads = [path.get("fill") for path in root.iter(f"{SVG_TAG}path")]  # of the cards, twice each device
    for number, block in enumerate(blocks[: len(shapes.PALETTE)]):
        same_colour = len(blocks[number :: len(shapes.PALETTE)])
        copies = len(block.devices) * same_colour * 2
        assert heads.count(shapes.PALETTE[number]) == copies
        assert texts(drawn).count(block.label) == 1 + 2 * len(block.devices)


def test_more_blocks_than_colours_still_have_labels_of_their_own():
    shown = texts(figure(LayoutSpec(["x"], MeshSpec([("x", 30)])).of((30,))))
    assert {"A", "Z", "AA", "AD"} <= set(shown)


WHOLE = numbered_tensor((6, 4))
DRAWS_ITSELF = {
    "mesh": (MESH_3X2, "MeshSpec([('x', 3), ('y', 2)])"),
    "sharding": (
        ROWS.of((6, 4)),
        "LayoutSpec(['x', 'unsharded'], MeshSpec([('x', 3), ('y', 2)])).of((6, 4))",
    ),
    "observed": (
        ROWS.observed(split(WHOLE, ROWS)),
        f"<Observed of {ROWS!r}.of((6, 4)): A A B B C C>",
    ),
    "comparison": (
        ROWS.of((6, 4)).compare(WHOLE, split(WHOLE + 1, ROWS)),
        f"<Comparison of {ROWS!r}.of((6, 4)): ? ? ? ? ? ?>",
    ),
}


@pytest.mark.parametrize("kind", DRAWS_ITSELF)
def test_an_object_is_shown_as_its_picture_and_stays_one_line_elsewhere(kind):
    thing, line = DRAWS_ITSELF[kind]
    formatter = DisplayFormatter()
    formatter.formatters["image/svg+xml"].enabled = True
    data, metadata = formatter.format(thing)
    assert data == {"image/svg+xml": figure(thing).svg, "text/plain": figure(thing).text}
    assert metadata == {"image/svg+xml": {"alt": figure(thing).text}}
    assert repr([thing]) == f"[{line}]"


def test_what_cannot_be_drawn_is_shown_as_a_line_and_the_reason():
    data, metadata = DisplayFormatter().format(LayoutSpec.replicated(MESH_3X2, 4).of((1, 2, 3, 4)))
    assert data["text/plain"].endswith(".of((1, 2, 3, 4))\n" + FOUR_AXES)
    assert set(data) == {"text/plain"}
    assert metadata == {}


def test_the_first_picture_needs_neither_tensorflow_nor_a_second():
    code = (
        "import sys; from course_lib import MeshSpec; assert 'course_lib.pictures' not in sys.modules;"
        "MeshSpec([('x', 2)])._repr_mimebundle_();"
        "print([name for name in ('tensorflow', 'matplotlib', 'anywidget') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_the_same_picture_has_the_same_bytes_in_every_process():
    code = (
        "from course_lib import LayoutSpec, MeshSpec; mesh = MeshSpec([('x', 3), ('y', 2)]);"
        "print(LayoutSpec(['x', 'y'], mesh).of((6, 4), element_bytes=4).picture().svg)"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "01"
    }
    assert shown == {figure(LayoutSpec(["x", "y"], MESH_3X2).of((6, 4), element_bytes=4)).svg + "\n"}


FOUR_AXES = (
    "A tensor of 4 axes cannot be drawn.\n"
    "  Allowed: 0 to 3 axes\n"
    "  What to do: Reshape the tensor, or look at it without a picture: layout.of(global_shape).shards."
)


def test_four_axes_cannot_be_drawn():
    with pytest.raises(CourseError) as refusal:
        figure(LayoutSpec.replicated(MESH_3X2, 4).of((1, 2, 3, 4)))
    assert str(refusal.value) == FOUR_AXES


def test_only_specs_have_pictures():
    with pytest.raises(TypeError, match="int has no picture"):
        figure(3)


@pytest.mark.parametrize(
    "draw", [ROWS.observed, lambda parts: ROWS.of((6, 2)).compare(np.zeros((6, 2)), parts)]
)
def test_another_number_of_components_is_refused(draw):
    with pytest.raises(CourseError, match="5 components were given for the mesh"):
        draw([np.zeros((2, 2))] * 5)


def test_components_of_unlike_shapes_are_refused():
    with pytest.raises(CourseError, match=r"The component of device 1 has the shape \(1, 2\)"):
        ROWS.observed([np.zeros((2, 2)), np.zeros((1, 2)), *[np.zeros((2, 2))] * 4])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1200, 48), (2, 2, 600)])
def test_extreme_tensors_become_pictures_of_bounded_size(shape):
    drawn = figure(LayoutSpec.replicated(MESH_3X2, len(shape)).of(shape))
    assert float(picture(drawn).get("width")) < 760
    assert math.isfinite(float(picture(drawn).get("height")))
