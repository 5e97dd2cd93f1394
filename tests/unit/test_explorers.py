"""The mesh and layout explorer: what it shows, its state, its table for pages, what Jupyter gets."""

from __future__ import annotations

import html.parser
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec, explorers
from course_lib.code import FRAMEWORKS, code_of
from course_lib.explorers.mesh_layout_state import PAGE_MESHES, PAGE_SHAPES
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.specs.sharding import numbered_tensor
from course_lib.widgets.base import key
from course_lib.widgets.controls import Choice, Number
from course_lib.widgets.table import page_table
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer
from lessons.lesson_02_communication.product_explorer import ProductExplorer
from lessons.lesson_02_communication.ring_explorer import RingExplorer
from lessons.lesson_04_a_run.explorer import BatchSizeExplorer
from lessons.lesson_06_save_and_serve.explorer import ReviewExplorer
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_10_custom_training.iterating_explorer import IterationExplorer
from lessons.lesson_10_custom_training.loss_scaling_explorer import LossScalingExplorer
from lessons.lesson_11_many_processes.explorer import ClusterExplorer
from tools.book.explorers import found

ROOT = Path(__file__).resolve().parents[2]
MESH_2X4 = MeshSpec([("x", 2), ("y", 4)])
MESH_3X2 = MeshSpec([("x", 3), ("y", 2)])
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


def observe(sharding):
    """Stands in for real devices: splits on the host."""
    return sharding.split(numbered_tensor(sharding.global_shape))


def choose(explorer, *path, to) -> None:
    """Does what the module sends when the reader sets a control."""
    explorer._handle_custom_msg({"kind": "change", "path": list(path), "value": to}, [])


def press_button(explorer) -> None:
    explorer._handle_custom_msg({"kind": "press"}, [])


def pieces(view, class_: str):
    """Yields the nodes of a class in a view."""
    if isinstance(view, list):
        if class_ in view[1].get("class", "").split():
            yield view
        for child in view[2:]:
            yield from pieces(child, class_)


def text_of(view) -> str:
    return view if isinstance(view, str) else "".join(map(text_of, view[2:]))


def shown(explorer, class_: str) -> list[str]:
    return [text_of(piece) for piece in pieces(explorer.view, class_)]


def legends(explorer) -> list[str]:
    return [text_of(group[2]) for group in explorer.view[2][2:]]


class Element(html.parser.HTMLParser):
    """Reads the state out of the explorer's HTML, and notes which elements it holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, _attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts[self.tags[-1]] = data


# In a notebook


def test_the_first_view_says_what_the_specs_say():
    explorer = MeshLayoutExplorer(mesh=MESH_3X2, global_shape=(6, 4), sharding_specs=[UNSHARDED, "y"])
    assert explorer.layout == LayoutSpec([UNSHARDED, "y"], MESH_3X2)
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


def test_the_reader_sets_sizes_lengths_and_entries():
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "mesh", 1, 1, to=8)
    choose(explorer, "shape", 1, to=16)
    choose(explorer, "layout", 1, to="y")
    assert explorer.mesh == MeshSpec([("x", 2), ("y", 8)])
    assert (explorer.global_shape, explorer.sharding_specs) == ((8, 16), ("x", "y"))
    assert explorer.sharding.local_shape == (4, 2)
    assert len(list(pieces(explorer.view, "device"))) == 16


def test_the_reader_sets_the_numbers_of_dimensions_and_axes():
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "num_dims", to=3)
    choose(explorer, "num_axes", to=3)
    assert explorer.mesh == MeshSpec([("x", 2), ("y", 4), ("z", 2)])
    assert (explorer.global_shape, explorer.sharding_specs) == ((8, 6, 4), ("x", UNSHARDED, UNSHARDED))
    choose(explorer, "layout", 2, to="z")
    choose(explorer, "num_dims", to=1)
    assert (explorer.mesh, explorer.sharding_specs) == (MeshSpec([("x", 2)]), ("x", UNSHARDED, UNSHARDED))
    choose(explorer, "num_axes", to=1)
    assert legends(explorer) == [
        "Mesh dimensions",
        "Their sizes",
        "Tensor axes",
        "Their lengths",
        "axis 0, length 8",
    ]


@st.composite
def choices(draw, explorer):
    """Draws any control and any value that it can be set to, sensible or not."""
    groups = explorer.controls(explorer.state, page=False)
    control = draw(st.sampled_from([control for group in groups for control in group.controls]))
    if isinstance(control, Choice):
        return control.path, draw(st.sampled_from([value for value, _text in control.options]))
    assert isinstance(control, Number)
    return control.path, draw(st.integers(1, 4) | st.sampled_from([None, -1, 0, 2.5, 17, 9999, 10**30]))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_choice_breaks_it_and_illegal_ones_say_why(data):
    explorer = MeshLayoutExplorer(observe)
    for _step in range(6):
        path, value = data.draw(choices(explorer))
        choose(explorer, *path, to=value)
        try:
            devices, refusal = explorer.sharding.mesh.size, []
        except CourseError as error:
            devices, refusal = 0, [f"This choice is not possible.{error}"]
        assert len(list(pieces(explorer.view, "device"))) == devices
        assert shown(explorer, "refusal") == refusal
        json.dumps(explorer.view)


def test_more_devices_than_can_be_shown_are_refused_by_name():
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "mesh", 0, 1, to=5)
    assert shown(explorer, "refusal") == [
        "This choice is not possible."
        "The mesh x 5 × y 4 has 20 devices.\n"
        "  Allowed: up to 16 devices\n"
        "  What to do: Make one of the sizes smaller."
    ]
    with pytest.raises(CourseError, match="20 devices"):
        explorer.mesh  # noqa: B018


@pytest.mark.parametrize("length", [0, 10**12])
def test_a_typed_length_is_refused_as_where_the_explorer_is_made(length):
    explorer = MeshLayoutExplorer(observe)
    choose(explorer, "shape", 1, to=length)
    with pytest.raises(CourseError, match=f"Axis 1 has the length {length}.\n.*from 1 to 9999\n"):
        explorer.sharding  # noqa: B018
    assert shown(explorer, "refusal")[0].startswith("This choice is not possible.Axis 1")


def test_a_long_mesh_dimension_can_be_made_real():
    explorer = MeshLayoutExplorer(observe, mesh=MeshSpec([("x", 12)]), global_shape=(24,))
    assert explorer.observe_choice().agrees


def test_a_choice_that_changes_nothing_is_answered_all_the_same(monkeypatch):
    explorer, answers = MeshLayoutExplorer(), []
    monkeypatch.setattr(explorer, "send", answers.append)
    choose(explorer, "mesh", 0, 1, to=2)
    assert answers == [{"kind": "answered"}]


def programs(explorer) -> dict[str, str]:
    """Returns the program of each framework that the view has."""
    details = pieces(explorer.view, "listings")
    listed = [piece for each in details for piece in each[4][2:]]
    return {listing[1]["data-listing"]: text_of(listing) for listing in listed}


def test_the_code_of_the_choice_is_there_to_copy():
    explorer = MeshLayoutExplorer(mesh=MESH_3X2, global_shape=(6, 4))
    choose(explorer, "layout", 1, to="y")
    sharding = LayoutSpec(["x", "y"], MESH_3X2).of((6, 4))
    assert programs(explorer) == {name: code_of(sharding, name) for name in FRAMEWORKS}
    choose(explorer, "layout", 1, to="x")
    assert programs(explorer) == {}


def test_one_program_is_shown_and_the_reader_can_choose_another():
    view = MeshLayoutExplorer().view
    (details,) = pieces(view, "listings")
    assert [text_of(part) for part in details[2:4]] == ["The code of this choice", "TensorFlowJAXPyTorch"]
    assert ["hidden" in listing[1] for listing in details[4][2:]] == [False, True, True]
    radios = [label[2][1] for label in details[3][2:]]
    assert [(radio["data-listing"], "checked" in radio) for radio in radios] == [
        ("TensorFlow", True),
        ("JAX", False),
        ("PyTorch", False),
    ]


# Reality


def test_the_button_compares_the_real_components_with_the_prediction():
    explorer = MeshLayoutExplorer(observe, mesh=MESH_2X4, global_shape=(6, 4), sharding_specs=["x", "y"])
    before = list(pieces(explorer.view, "panel"))
    press_button(explorer)
    assert shown(explorer, "verdict") == ["✓ All 8 real components equal the prediction."]
    reality = list(pieces(explorer.view, "panel"))[len(before)]
    assert text_of(reality).startswith("Realityy=0y=1y=2y=3x=00A048")
    choose(explorer, "layout", 1, to=UNSHARDED)
    assert len(list(pieces(explorer.view, "panel"))) == len(before)
    assert shown(explorer, "verdict") == [""]


def test_a_reality_that_differs_is_shown_as_it_is():
    def swapped(sharding):
        first, second, *others = observe(sharding)
        return [second, first, *others]

    explorer = MeshLayoutExplorer(swapped, mesh=MeshSpec([("x", 6)]), global_shape=(6, 4))
    press_button(explorer)
    assert shown(explorer, "verdict") == [
        "✗ 2 of 6 real components differ from the prediction: devices 0, 1."
    ]
    assert [card[1]["data-block"] for card in pieces(explorer.view, "wrong")] == ["1", "0"]


def test_the_reader_is_told_before_tensorflow_starts_and_asked_only_once():
    told, calls = [], []

    def slow(sharding):
        calls.append(sharding)
        told.extend(shown(explorer, "verdict"))
        return observe(sharding)

    explorer = MeshLayoutExplorer(slow)
    press_button(explorer)
    press_button(explorer)
    assert told == ["Making the real DTensor. The first time this starts TensorFlow and takes some seconds."]
    assert len(calls) == 1


def test_a_failure_while_making_the_real_tensor_is_said_in_the_explorer():
    def fails(sharding):
        raise RuntimeError("no such device")

    explorer = MeshLayoutExplorer(fails)
    press_button(explorer)
    assert shown(explorer, "verdict") == ["✗ RuntimeError: no such device"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "The button needs a function: MeshLayoutExplorer(observe)."),
        ({"observe": observe, "global_shape": (2000, 1000)}, "The most is 1,048,576"),
        ({"observe": observe, "sharding_specs": ["x", "x"]}, "the choice is illegal"),
    ],
)
def test_where_no_real_tensor_can_be_made_the_button_says_why(arguments, why):
    explorer = MeshLayoutExplorer(**arguments)
    assert why in shown(explorer, "why")[0]
    assert "disabled" in next(pieces(explorer.view, "press"))[1]
    with pytest.raises(CourseError):
        explorer.observe_choice()


def test_eleven_devices_along_a_dimension_are_not_too_many():
    explorer = MeshLayoutExplorer(observe, mesh=MeshSpec([("x", 11)]), global_shape=(22,))
    assert explorer.observe_choice().agrees


# On a page


@pytest.fixture(scope="module")
def table():
    return page_table(MeshLayoutExplorer())


def whole(table, value):
    """Puts the shared parts back where numbers stand for them."""
    if isinstance(value, int):
        return whole(table, table["parts"][value])
    return [whole(table, child) for child in value] if isinstance(value, list) else value


def test_the_table_holds_every_view_that_its_options_lead_to(table):
    explorer = MeshLayoutExplorer()
    states, legal = 0, 0
    for mesh in PAGE_MESHES:
        for shape in PAGE_SHAPES:
            for entries in np.ndindex(*[len(mesh.dims) + 1] * len(shape)):
                names = [UNSHARDED, *mesh.names]
                state = {
                    "num_dims": len(mesh.dims),
                    "mesh": [list(dim) for dim in mesh.dims],
                    "num_axes": len(shape),
                    "shape": list(shape),
                    "layout": [names[at] for at in entries],
                }
                place = table["keys"].index(key(state))
                view = whole(table, table["views"][place])
                assert view == shapes.to_json(explorer.tree(state, page=True))
                after = [table["keys"][at] for at in table["leads_to"][place]]
                assert after == [key(each) for each in explorer.next_states(state)]
                states += 1
                legal += any(pieces(view, "facts"))
    assert states == len(table["keys"])
    assert 100 < legal < states
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < 600_000


def test_both_kinds_of_illegal_choice_are_in_the_table(table):
    told = json.dumps(table)
    assert "splits two axes" in told
    assert "does not split" in told


def test_an_explorer_with_another_mesh_leads_into_the_table(table):
    explorer = MeshLayoutExplorer(mesh=MeshSpec([("batch", 16)]), global_shape=(32, 3))
    state = json.loads(Element(explorer.to_html()).texts["script"])
    assert set(state["leads_to"]) <= set(table["keys"])
    assert len(state["leads_to"]) == len(PAGE_MESHES) + len(PAGE_SHAPES) + 2 * 2


def test_a_page_gets_small_plain_json_and_a_picture_for_readers_without_scripts():
    text = MeshLayoutExplorer(observe, sharding_specs=["x", UNSHARDED]).to_html()
    assert len(text.encode()) < 40_000
    element = Element(text)
    assert element.tags[:3] == ["course-explorer", "script", "svg"]
    assert json.loads(element.texts["script"])["table"] == "mesh_layout.en.json"
    assert "pre" in Element(MeshLayoutExplorer(sharding_specs=["x", "x"]).to_html()).tags


def test_state_holds_no_markup():
    explorer = MeshLayoutExplorer(observe)
    explorer._reality = (explorer.state, "</script><b>")
    text = explorer.to_html()
    assert "</script><b>" not in text
    assert "</script><b>" in Element(text).texts["script"].replace("\\u003c", "<")


def test_a_page_speaks_the_readers_language():
    set_language("ja")
    try:
        state = json.loads(Element(MeshLayoutExplorer().to_html()).texts["script"])
    finally:
        set_language("en")
    assert state["table"] == "mesh_layout.ja.json"
    assert state["view"][1]["lang"] == "ja"
    assert "ローカル形状(4, 6)" in [text_of(fact) for fact in pieces(state["view"], "fact")]


# For Jupyter


def test_jupyter_gets_widget_element_and_a_text_that_never_changes():
    data, _metadata = DisplayFormatter().format(MeshLayoutExplorer(observe))
    assert data["text/plain"] == MeshLayoutExplorer().figure().text
    assert data["text/html"] == MeshLayoutExplorer(observe).to_html()
    assert set(data) == {"text/plain", "text/html", WIDGET_MIME}


def test_colab_gets_the_widget_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    data, _metadata = MeshLayoutExplorer(observe)._repr_mimebundle_()
    assert set(data) == {"text/plain", WIDGET_MIME}


def test_an_illegal_choice_can_be_shown_and_read_but_has_no_layout():
    explorer = MeshLayoutExplorer(observe, sharding_specs=["x", "x"])
    assert explorer.sharding_specs == ("x", "x")
    with pytest.raises(CourseError, match="splits two axes"):
        explorer.layout  # noqa: B018
    assert repr(explorer).startswith("The mesh dimension 'x' splits two axes.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mesh": "x 2 × y 4"}, "'x 2 × y 4' is no mesh.\n  Allowed: a MeshSpec\n"),
        ({"mesh": MeshSpec([("x", 17)])}, "The explorer cannot show the mesh x 17.\n"),
        ({"mesh": MeshSpec([(name, 1) for name in "abcd"])}, "The explorer cannot show the mesh a 1 × b 1"),
        ({"global_shape": 8}, "The explorer cannot show a tensor of the shape 8.\n"),
        ({"global_shape": "86"}, "The explorer cannot show a tensor of the shape '86'.\n"),
        ({"global_shape": (1, 2, 3, 4)}, "The explorer cannot show a tensor of the shape (1, 2, 3, 4).\n"),
        ({"global_shape": (8, 0)}, "Axis 1 has the length 0.\n  Allowed: whole numbers from 1 to 9999\n"),
        ({"sharding_specs": LayoutSpec(["x", "y"], MESH_2X4)}, "LayoutSpec(['x', 'y'], "),
        ({"sharding_specs": ["x"]}, "['x'] is no layout of a tensor of 2 axes.\n"),
        ({"sharding_specs": ["x", "z"]}, "The mesh has no dimension 'z'.\n"),
    ],
)
def test_what_it_cannot_show_is_refused(arguments, message):
    with pytest.raises(CourseError) as refusal:
        MeshLayoutExplorer(**arguments)
    assert str(refusal.value).startswith(message)


def test_the_explorer_needs_no_tensorflow():
    code = (
        "import sys, course_lib; from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer;"
        "MeshLayoutExplorer()._repr_mimebundle_();"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'matplotlib')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


NEW_EXPLORERS = """
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer

class Made(MeshLayoutExplorer):
    def __init__(self, observe=None, **options):
        super().__init__(observe, **options)

class NeedsAnArgument(MeshLayoutExplorer):
    def __init__(self, observe):
        super().__init__(observe)
"""


def test_the_book_finds_each_explorer_that_needs_no_argument(tmp_path, monkeypatch):
    assert list(found()) == [
        BatchSizeExplorer,
        ClusterExplorer,
        IterationExplorer,
        LossScalingExplorer,
        MeshLayoutExplorer,
        ProductExplorer,
        ReviewExplorer,
        RingExplorer,
        StrategyExplorer,
    ]
    (tmp_path / "new_one.py").write_text(NEW_EXPLORERS, "utf-8")
    monkeypatch.setattr(explorers, "__path__", [*explorers.__path__, str(tmp_path)])
    assert sorted(explorer.__name__ for explorer in found()) == [
        "BatchSizeExplorer",
        "ClusterExplorer",
        "IterationExplorer",
        "LossScalingExplorer",
        "Made",
        "MeshLayoutExplorer",
        "ProductExplorer",
        "ReviewExplorer",
        "RingExplorer",
        "StrategyExplorer",
    ]
    monkeypatch.delitem(sys.modules, "course_lib.explorers.new_one")
    monkeypatch.delattr(explorers, "new_one")
