"""The mesh and layout explorer: what it shows, its state, its table for pages, what Jupyter gets."""

from __future__ import annotations

import pytest

from course_lib import CourseError
from course_lib.pictures import shapes
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import numbered_tensor
from course_lib.widgets.pieces import button
from tests.course import from_lesson
from tests.explored import choose, pieces, press, shown, text_of

MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")


def observe(sharding):
    """Stands in for real devices: splits on the host."""
    return sharding.split(numbered_tensor(sharding.global_shape))


def explored(observe=None, **choices):
    """Returns an explorer in which the reader has made these choices."""
    explorer = MeshLayoutExplorer(observe)
    explorer.state = {**explorer.state, **choices}
    return explorer


def legends(explorer) -> list[str]:
    return [text_of(group[2]) for group in explorer.view[2][2:]]


# In a notebook


def test_the_view_says_what_the_specs_say():
    explorer = explored(mesh=[["x", 3], ["y", 2]], shape=[6, 4], layout=[UNSHARDED, "y"])
    assert str(explorer.sharding.layout) == "[unsharded, y]"
    assert shown(explorer, "fact") == [
        "Local shape(6, 2)",
        "Bytes on each device48",
        "Copies of each element3",
    ]
    cards = [(card[1]["data-device"], card[1]["data-block"]) for card in pieces(explorer.view, "device")]
    assert cards == [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1"), ("4", "0"), ("5", "1")]
    assert next(pieces(explorer.view, "device"))[1]["aria-label"] == (
        "Device 0 at x=0, y=0 holds block A, [0:6, 0:2]. The same block is on devices: 2, 4."
    )
    assert [(part[1]["data-device"], text_of(part)) for part in pieces(explorer.view, "part")] == [
        ("0", "A"),
        ("1", "B"),
    ]


def test_the_reader_sets_the_numbers_of_dimensions_and_axes():
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "num_dims", 3)
    choose(explorer, "num_axes", 3)
    sharding = explorer.sharding
    assert str(sharding.mesh) == "x 2 × y 4 × z 2"
    assert (sharding.global_shape, str(sharding.layout)) == ((8, 6, 4), "[x, unsharded, unsharded]")
    choose(explorer, "layout", 2, "z")
    choose(explorer, "num_dims", 1)
    sharding = explorer.sharding
    assert (str(sharding.mesh), str(sharding.layout)) == ("x 2", "[x, unsharded, unsharded]")
    choose(explorer, "num_axes", 1)
    assert legends(explorer) == [
        "Mesh dimensions",
        "Their sizes",
        "Tensor axes",
        "Their lengths",
        "axis 0, length 8",
    ]


def test_more_devices_than_can_be_shown_are_refused_by_name():
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "mesh", 0, 1, 5)
    assert shown(explorer, "refusal") == [
        "This choice is not possible."
        "The explorer cannot show the mesh x 5 × y 4.\n"
        "  Allowed: 1 to 3 mesh dimensions and up to 16 devices\n"
        "  What to do: Make one of the sizes smaller."
    ]
    with pytest.raises(CourseError, match="x 5 × y 4"):
        explorer.sharding  # noqa: B018


@pytest.mark.parametrize("length", [0, 10**12])
def test_a_typed_length_that_is_no_length_is_refused(length):
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "shape", 1, length)
    with pytest.raises(CourseError, match=f"Axis 1 has the length {length}.\n.*from 1 to 9999\n"):
        explorer.sharding  # noqa: B018
    assert shown(explorer, "refusal")[0].startswith("This choice is not possible.Axis 1")


# Reality


def test_the_button_compares_the_real_components_with_the_prediction():
    explorer = explored(observe, shape=[6, 4], layout=["x", "y"])
    before = list(pieces(explorer.view, "panel"))
    press(explorer)
    assert shown(explorer, "verdict") == ["✓ All 8 real components equal the prediction."]
    reality = list(pieces(explorer.view, "panel"))[len(before)]
    assert text_of(reality).startswith("Realityy=0y=1y=2y=3x=00A048")
    choose(explorer, "layout", 1, UNSHARDED)
    assert len(list(pieces(explorer.view, "panel"))) == len(before)
    assert shown(explorer, "verdict") == [""]


def test_a_reality_that_differs_is_shown_as_it_is():
    def swapped(sharding):
        first, second, *others = observe(sharding)
        return [second, first, *others]

    explorer = explored(swapped, num_dims=1, mesh=[["x", 6]], shape=[6, 4])
    press(explorer)
    assert shown(explorer, "verdict") == [
        "✗ 2 of 6 real components differ from the prediction: devices 0, 1."
    ]
    assert [card[1]["data-block"] for card in pieces(explorer.view, "wrong")] == ["1", "0"]


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ({"observe": observe, "shape": [2000, 1000]}, "The most is 1,048,576"),
        ({"observe": observe, "layout": ["x", "x"]}, "the choice is illegal"),
    ],
)
def test_where_no_real_tensor_can_be_made_the_button_says_why(choices, why):
    explorer = explored(**choices)
    assert why in shown(explorer, "why")[0]
    assert "disabled" in next(pieces(explorer.view, "press"))[1]


def test_an_idle_button_says_so_and_keeps_the_focus():
    ((_tag, attributes, _text),) = map(shapes.to_json, button("Stop", name="stop", idle=True))
    assert attributes["aria-disabled"] == "true"
    assert "disabled" not in attributes  # a disabled button would lose the focus
    ((_tag, attributes, _text),) = map(shapes.to_json, button("Stop", name="stop"))
    assert "aria-disabled" not in attributes
