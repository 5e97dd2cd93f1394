"""The mesh and layout explorer on a bare page: clicks, keys, reasons, themes, telephones."""

from __future__ import annotations

import pytest

from course_lib import MeshSpec, code_of
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.book.bare_page import NOTEBOOK_HOST, answered, pick, write_pages
from tests.course import from_lesson
from tools.book.explorers import write_tables

MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_tables(["en"], folder, {"mesh_layout": MeshLayoutExplorer})
    pages = {"one": MeshLayoutExplorer().to_html(), "none": ""}
    write_pages(folder, pages)
    return folder


CARDS = ".device[role=button]"
FOCUSED = "document.activeElement.shadowRoot.activeElement"
MESH = MeshSpec([("x", 2), ("y", 4)])


def labels(page) -> list[str]:
    """Returns the number and the block of each card."""
    return [" ".join(card.locator("text").all_text_contents()[:2]) for card in page.locator(CARDS).all()]


def devices(page, state: str) -> list[str]:
    return [card.get_attribute("data-device") for card in page.locator(f"{CARDS}.{state}").all()]


def test_replicas_have_one_colour_and_a_click_shows_them(visit):
    page = visit("one")
    colours = [card.locator("path").first.get_attribute("fill") for card in page.locator(CARDS).all()]
    assert colours == [colours[0]] * 4 + [colours[4]] * 4
    assert colours[0] != colours[4]
    page.locator(f"{CARDS}[data-device='5']").click()
    assert devices(page, "chosen") == ["5"]
    assert devices(page, "same") == ["4", "6", "7"]
    assert page.locator(".outline.same").get_attribute("data-block") == "1"
    assert page.locator(".outline.same").is_visible()
    assert page.locator(".says").inner_text() == (
        "Device 5 at x=1, y=1 holds block B, [4:8, 0:6]. The same block is on devices: 4, 6, 7."
    )


def test_everything_works_by_keyboard(visit):
    page = visit("one")
    settle = page.locator(".explorer:not(.busy)")
    page.keyboard.press("Tab")  # to the mesh
    page.keyboard.press("ArrowRight")
    settle.wait_for()
    assert page.evaluate(f"{FOCUSED}.parentNode.innerText") == "x 4 × y 2"
    assert labels(page) == [f"{device} {'ABCD'[device // 2]}" for device in range(8)]
    for _group in ("tensor", "axis 0", "axis 1"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.locator(".refusal").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator(CARDS).first.wait_for()
    page.keyboard.press("Tab")
    assert devices(page, "chosen") == ["0"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert devices(page, "chosen") == ["3"]  # below device 1, in a grid of two columns
    assert page.evaluate(f"{FOCUSED}.matches(':focus-visible[data-device=\"3\"]')")
    assert page.locator(f"{CARDS}[aria-pressed=true]").count() == 1
    assert page.locator(f"{CARDS}[tabindex='0']").count() == 1
    for key, device in (("ArrowUp", "1"), ("End", "7"), ("Home", "0"), ("ArrowUp", "0")):
        page.keyboard.press(key)
        assert devices(page, "chosen") == [device]


def shown_code(place) -> str:
    """Returns the program that the reader sees."""
    (listing,) = [each for each in place.locator("pre").all() if each.is_visible()]
    return listing.text_content()


def test_the_code_of_the_choice_follows_the_clicks_and_the_framework_stays(visit):
    page = visit("one")
    assert [each for each in page.locator("pre").all() if each.is_visible()] == []
    page.get_by_text("The code of this choice").click()
    assert shown_code(page) == code_of(LayoutSpec(["x", UNSHARDED], MESH).of((8, 6)), "TensorFlow")
    page.locator(".listings label", has_text="PyTorch").click()
    pick(page, "axis 0, length 8", "y")
    assert shown_code(page) == code_of(LayoutSpec(["y", UNSHARDED], MESH).of((8, 6)), "PyTorch")
    pick(page, "Tensor", "(4, 6, 8)")
    assert shown_code(page) == code_of(LayoutSpec(["y", UNSHARDED, UNSHARDED], MESH).of((4, 6, 8)), "PyTorch")
    assert page.locator(".listings label:has(:checked)").inner_text() == "PyTorch"


def test_code_is_unfolded_chosen_and_copied_by_keyboard(visit):
    page = visit("one")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(f"{CARDS}[data-device='0']").focus()
    page.keyboard.press("Tab")  # the button that needs a notebook is no stop
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expected = code_of(LayoutSpec(["x", UNSHARDED], MESH).of((8, 6)), "JAX")
    assert shown_code(page) == expected
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUSED}.className") == "listing"  # arrows move what is too long or too wide
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".copied", has_text="Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.locator(".listings label", has_text="TensorFlow").click()
    assert page.locator(".copied").inner_text() == ""


def test_without_its_table_the_picture_stays(page, server):
    page.route("**/*.json", lambda route: route.abort())
    page.goto(f"{server}one-light.html", wait_until="networkidle")
    assert page.locator("course-explorer svg").first.is_visible()
    assert page.locator("course-explorer").inner_text().startswith("Mesh and layout explorer")


def test_without_scripts_the_picture_stays(scriptless_page, server):
    scriptless_page.goto(f"{server}one-light.html")
    assert scriptless_page.locator("course-explorer [role=img] > svg").first.is_visible()


def test_in_a_notebook_what_the_reader_does_reaches_python_and_its_views_come_back(visit):
    page = visit("none")
    explorer = MeshLayoutExplorer()
    explorer.state = {**explorer.state, "shape": [6, 4], "layout": ["x", "y"]}
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    size = page.get_by_label("y", exact=True).first
    size.fill("2")
    size.press("Tab")
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["mesh", 1, 1], "value": 2}]
    assert page.locator(".busy .late").count() == 1
    answered(page, explorer)
    assert page.locator(".busy").count() == 0
    assert str(explorer.sharding.mesh) == "x 2 × y 2"
    assert labels(page) == ["0 A", "1 B", "2 C", "3 D"]
    assert (
        page.evaluate("document.querySelector('#notebook > div').shadowRoot.activeElement.name") == "num_axes"
    )
    size.fill("")
    size.press("Tab")
    answered(page, explorer)
    assert "has the size None" in page.locator(".refusal").inner_text()
    page.evaluate("leave()")
    assert page.evaluate("Object.values(listeners).flat().length") == 0
