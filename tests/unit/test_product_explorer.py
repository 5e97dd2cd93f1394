"""The product explorer: what it shows, its button, its table for pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.specs.communication import product
from course_lib.specs.compared import Compared
from course_lib.widgets import controls
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_02_communication.product_explorer import ProductExplorer

ROOT = Path(__file__).resolve().parents[2]
GRID = MeshSpec([("x", 4), ("y", 2)])


def observe(left, right, wanted):
    """Stands in for real devices: runs what is predicted, as CPUs do."""
    predicted = product(left, right, wanted)
    seen = tuple(each.as_run("CPU") for each in predicted.collectives)
    return Compared(predicted, seen, predicted.result.layout)


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


def test_another_mesh_begins_with_a_partial_sum_too():
    explorer = ProductExplorer(mesh=MeshSpec([("model", 2), ("batch", 4)]))
    assert explorer.communication.collectives[0].mesh_dims == ("model",)


def test_the_reader_sets_mesh_layouts_and_what_reads_the_product():
    explorer = ProductExplorer()
    choose(explorer, "left", 0, to="x")
    choose(explorer, "left", 1, to=UNSHARDED)
    choose(explorer, "right", 0, to=UNSHARDED)
    choose(explorer, "right", 1, to="x")
    assert headings(explorer)[2:] == [
        "1. A: [x, unsharded] → [unsharded, unsharded]",
        "2. AB: [unsharded, x] → [unsharded, unsharded]",
    ]
    choose(explorer, "wanted", to=[UNSHARDED, UNSHARDED])
    choose(explorer, "wanted", 1, to="x")
    assert explorer.wanted == LayoutSpec([UNSHARDED, "x"], explorer.mesh)
    assert headings(explorer)[2:] == ["1. A: [x, unsharded] → [unsharded, unsharded]"]
    choose(explorer, "mesh", to=[["x", 4], ["y", 2]])
    assert (explorer.mesh, explorer.left.layout) == (GRID, LayoutSpec(["x", UNSHARDED], GRID))
    assert explorer.communication == product(explorer.left, explorer.right, explorer.wanted)
    choose(explorer, "right", 1, to="y")
    choose(explorer, "mesh", to=[["x", 8]])
    assert explorer.right.layout.sharding_specs == (UNSHARDED, UNSHARDED)


def test_illegal_choices_say_why_and_disable_the_button():
    explorer = ProductExplorer(observe, mesh=GRID, left=(UNSHARDED, "x"), right=("y", UNSHARDED))
    (why,) = shown(explorer, "refusal")
    assert "The inner axis is split over x in one factor and over y in the other." in why
    assert "disabled" in next(pieces(explorer.view, "press"))[1]
    choose(explorer, "right", 0, to="x")
    assert shown(explorer, "refusal") == []
    choose(explorer, "left", 0, to="x")
    assert "The mesh dimension 'x' splits two axes." in shown(explorer, "refusal")[0]
    with pytest.raises(CourseError, match="splits two axes"):
        explorer.observe_choice()
    assert "splits two axes" in repr(explorer)


def test_a_layout_that_does_not_fit_its_factor_is_illegal():
    explorer = ProductExplorer(shapes=((4, 8), (8, 24)), left=("x", UNSHARDED), right=(UNSHARDED,) * 2)
    assert "Axis 0 of length 4 does not split in 8 parts" in shown(explorer, "refusal")[0]


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_no_choice_breaks_it(data):
    explorer = ProductExplorer(observe)
    for _choice in range(6):
        groups = explorer.controls(explorer.state, page=False)
        control = data.draw(st.sampled_from([control for group in groups for control in group.controls]))
        choose(explorer, *control.path, to=data.draw(st.sampled_from(controls.leads_to(control))))
        json.dumps(explorer.view)
        if shown(explorer, "refusal"):
            with pytest.raises(CourseError):
                explorer.observe_choice()
        else:
            assert len(headings(explorer)) == 2 + len(explorer.communication.steps)
            assert explorer.observe_choice().agrees


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"shapes": ((16, 8), (9, 24))}, "A matrix of shape .16, 8. cannot be multiplied by one of shape"),
        ({"shapes": (16, 8)}, "16 is not the shape of a tensor"),
        ({"shapes": ((16, 8, 2), (8, 24))}, "has 3"),
        ({"mesh": MeshSpec([("x", 32)])}, "The explorer cannot show the mesh x 32"),
        ({"mesh": 8}, "8 is no mesh"),
        ({"left": ("z", UNSHARDED)}, "The mesh has no dimension 'z'"),
        ({"left": "xy"}, "'xy' is no layout"),
        ({"wanted": ("x",)}, "is no layout of a tensor of 2 axes"),
    ],
)
def test_what_it_cannot_show_is_refused(arguments, why):
    with pytest.raises(CourseError, match=why):
        ProductExplorer(**arguments)


# Reality


def test_the_button_puts_what_ran_beside_the_prediction():
    explorer = ProductExplorer(observe)
    press_button(explorer)
    assert shown(explorer, "verdict")[0].splitlines() == [
        "Predicted: 1 collective; each device sends 2,688 bytes.",
        "Observed: 1 collective; each device sends 2,688 bytes.",
        "✓ TensorFlow ran what was predicted. Layout and values of the result are right.",
    ]
    assert len(list(pieces(explorer.view, "member"))) == 2 * 8
    choose(explorer, "left", 1, to=UNSHARDED)
    assert shown(explorer, "verdict") == [""]


def test_the_reader_is_told_before_tensorflow_starts_and_asked_only_once():
    seen, calls = [], []

    def slow(*arguments):
        calls.append(arguments)
        seen.extend(shown(explorer, "verdict"))
        return observe(*arguments)

    explorer = ProductExplorer(slow)
    press_button(explorer)
    press_button(explorer)
    assert seen == ["Running it. The first time this starts TensorFlow and takes some seconds."]
    assert calls == [(explorer.left, explorer.right, None)]


def test_a_failure_on_the_devices_is_said_in_the_explorer():
    def fails(*_arguments):
        raise RuntimeError("no such device")

    explorer = ProductExplorer(fails)
    press_button(explorer)
    assert shown(explorer, "verdict") == ["✗ RuntimeError: no such device"]


def test_without_a_function_the_button_says_so():
    explorer = ProductExplorer()
    assert shown(explorer, "why") == ["The button needs a function: ProductExplorer(observed.product)."]
    with pytest.raises(CourseError, match="cannot run the product"):
        explorer.observe_choice()


# On a page


@pytest.fixture(scope="module")
def table():
    return page_table(ProductExplorer())


def whole(table, value):
    """Puts the shared parts back where numbers stand for them."""
    if isinstance(value, int):
        return whole(table, table["parts"][value])
    return [whole(table, child) for child in value] if isinstance(value, list) else value


def test_the_table_holds_every_choice_and_is_small(table):
    layouts_of_factors = {1: 2**4, 2: 3**4, 3: 4**4}
    readers = 1 + 2**2  # on the mesh of one dimension only
    assert (
        len(table["keys"])
        == readers * layouts_of_factors[1] + 2 * layouts_of_factors[2] + layouts_of_factors[3]
    )
    explorer = ProductExplorer()
    view = whole(table, table["views"][table["keys"].index(key(explorer.state))])
    assert view == shapes.to_json(explorer.tree(explorer.state, page=True))
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < 600_000


def test_illegal_choices_are_in_the_table(table):
    explorer = ProductExplorer(mesh=GRID, left=(UNSHARDED, "x"), right=("y", UNSHARDED))
    view = whole(table, table["views"][table["keys"].index(key(explorer.state))])
    assert list(pieces(view, "refusal")) == list(pieces(explorer.view, "refusal"))


def test_an_explorer_with_factors_of_its_own_leads_into_the_table(table):
    explorer = ProductExplorer(
        mesh=MeshSpec([("batch", 4), ("model", 2)]),
        shapes=((64, 32), (32, 8)),
        left=("batch", UNSHARDED),
        right=(UNSHARDED, "model"),
        wanted=("batch", UNSHARDED),
    )
    assert {key(state) for state in explorer.next_states(explorer.state)} <= set(table["keys"])


def test_a_page_says_that_the_button_needs_a_notebook(table):
    view = shapes.to_json(ProductExplorer(observe).tree(ProductExplorer().state, page=True))
    (why,) = pieces(view, "why")
    assert text_of(why) == "The button needs a running notebook: open this lesson in Jupyter or Colab."


def test_a_page_gets_the_picture_too_and_it_is_small():
    text = ProductExplorer().to_html()
    assert '"table":"product.en.json"' in text
    assert "</script><svg" in text
    assert len(text.encode()) < 40_000


def test_it_speaks_the_readers_language():
    set_language("ja")
    try:
        view = ProductExplorer().view
    finally:
        set_language("en")
    assert view[1]["lang"] == "ja"
    assert "部分和" in text_of(view)


def test_a_notebook_stores_a_text_that_follows_from_the_arguments():
    explorer = ProductExplorer(observe)
    assert explorer._repr_mimebundle_()[0]["text/plain"] == explorer.communication.picture().text


def test_the_explorer_needs_no_tensorflow():
    code = (
        "import sys; from lessons.lesson_02_communication.product_explorer import ProductExplorer;"
        "ProductExplorer()._repr_mimebundle_();"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'matplotlib')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
