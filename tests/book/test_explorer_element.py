"""The mesh and layout explorer on a bare page: clicks, keys, reasons, themes, telephones."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from course_lib import UNSHARDED, MeshSpec
from course_lib.explorers.mesh_layout import MeshLayoutExplorer
from course_lib.specs.sharding import numbered_tensor
from tests.book.built_site import QuietHandler

MODULE = Path(__file__).resolve().parents[2] / "course_lib" / "widgets" / "static" / "mesh_layout_explorer.js"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Explorers</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>{style}</style></head>
<body><main><h1>Explorers</h1><h2>One</h2>{explorers}</main>
<script type="module" src="mesh_layout_explorer.js"></script></body></html>"""
STYLES = {
    "light": "body { background: #FFF; color: #222832 }",
    "dark": ":root { color-scheme: dark } body { background: #14181E; color: #CED6DD }",
}
# A kernel without Jupyter: the module's notebook host gets a model whose answers this page makes.
NOTEBOOK_HOST = """async ([state, answer]) => {
  const host = (await import("./mesh_layout_explorer.js")).default;
  const listeners = {};
  const model = { saved: 0, sent: [], get: (name) => state[name],
    set(name, value) { state[name] = value; (listeners[name] ?? []).forEach((call) => call()); },
    save_changes() { this.saved += 1; }, send(message) { this.sent.push(message); },
    on: (event, call) => (listeners[event.slice(7)] ??= []).push(call),
    off: (event, call) => listeners[event.slice(7)].splice(listeners[event.slice(7)].indexOf(call), 1) };
  const el = document.body.appendChild(document.createElement("div"));
  el.id = "notebook";
  window.model = model;
  window.listeners = listeners;
  window.leave = host.render({ model, el });
  window.answer = () => model.set("observed", answer);
}"""


def observe(layout, global_shape):
    return [numbered_tensor(global_shape)[index] for index in layout.shards(global_shape).values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(MODULE, folder)
    observed = MeshLayoutExplorer(
        observe, mesh=MeshSpec([("x", 3), ("y", 2)]), global_shape=(6, 4), sharding_specs=["x", UNSHARDED]
    )
    observed.observe_choice()
    pages = {
        "one": MeshLayoutExplorer().to_html(),
        "two": MeshLayoutExplorer().to_html() + observed.to_html(),
        "three-axes": MeshLayoutExplorer(
            mesh=MeshSpec([("x", 2), ("y", 2), ("z", 2)]), global_shape=(4, 6, 8)
        ).to_html(),
        "vector": MeshLayoutExplorer(mesh=MeshSpec([("x", 8)]), global_shape=(24,)).to_html(),
        "illegal": MeshLayoutExplorer(sharding_specs=["x", "x"]).to_html(),
        "none": "",
    }
    for (name, explorers), (theme, style) in (
        (page, theme) for page in pages.items() for theme in STYLES.items()
    ):
        (folder / f"{name}-{theme}.html").write_text(PAGE.format(style=style, explorers=explorers), "utf-8")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def visit(page, server):
    """Returns a function that opens a page; at the end nothing may have gone wrong or left the machine."""
    trouble: list[str] = []
    page.set_default_timeout(5000)
    page.on("console", lambda message: message.type in ("error", "warning") and trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((server, "data:")) or trouble.append(asked.url))

    def open_page(name: str, theme: str = "light"):
        page.goto(f"{server}{name}-{theme}.html", wait_until="networkidle")
        return page

    yield open_page
    assert trouble == []


def pick(place, group: str, option: str) -> None:
    """Clicks an option of a group."""
    fieldset = place.locator("fieldset").filter(has_text=group).first
    fieldset.locator("label").filter(has_text=re.compile(f"^{re.escape(option)}$")).click()


def fact(page, name: str) -> str:
    return page.locator(".facts div", has_text=name).locator("dd").inner_text()


def labels(page, cards: str = "button.device") -> list[str]:
    return page.locator(f"{cards} .name").all_inner_texts()


def devices(page, state: str) -> list[str]:
    return [card.get_attribute("data-device") for card in page.locator(f"button.device.{state}").all()]


def test_shows_which_block_each_device_holds_as_soon_as_the_page_is_there(visit):
    page = visit("one")
    assert labels(page) == [f"{device}\n{'AB'[device // 4]}" for device in range(8)]
    assert fact(page, "Local shape") == "(4, 6)"
    assert fact(page, "Bytes on each device") == "96"
    assert fact(page, "Copies of each element") == "4"


def test_clicks_change_mesh_tensor_and_layout(visit):
    page = visit("one")
    pick(page, "Tensor", "(6, 4)")
    pick(page, "axis 1, length 4", "y")
    assert labels(page) == [f"{device}\n{'ABCDEFGH'[device]}" for device in range(8)]
    assert fact(page, "Copies of each element") == "1"
    pick(page, "Devices", "6")
    assert page.locator("fieldset").nth(1).locator("label:has(:checked)").inner_text() == "x 2 × y 3"
    assert "Axis 1 of length 4 does not split in 3 parts" in page.locator(".refusal").inner_text()
    pick(page, "Mesh", "x 3 × y 2")
    assert labels(page) == [f"{device}\n{'ABCDEF'[device]}" for device in range(6)]


def test_replicas_have_one_colour_and_a_click_shows_them(visit):
    page = visit("one")
    colours = [
        card.evaluate("card => getComputedStyle(card.querySelector('.name')).backgroundColor")
        for card in page.locator("button.device").all()
    ]
    assert colours == [colours[0]] * 4 + [colours[4]] * 4
    assert colours[0] != colours[4]
    page.locator("button.device[data-device='5']").click()
    assert devices(page, "chosen") == ["5"]
    assert devices(page, "same") == ["4", "6", "7"]
    assert page.locator(".tensor .held").get_attribute("data-block") == "1"
    assert page.locator(".says").inner_text() == (
        "Device 5 at x=1, y=1 holds block B, [4:8, 0:6]. The same block is on devices: 4, 6, 7."
    )


def test_a_click_on_a_block_shows_who_holds_it(visit):
    page = visit("one")
    page.locator(".tensor .part[data-block='1']").click()
    assert devices(page, "chosen") == ["4"]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("x", "The mesh dimension 'x' splits two axes.\n  Allowed: each mesh dimension on one axis at most"),
        ("y", "Axis 1 of length 6 does not split in 4 parts over 'y'.\n  Allowed: lengths that divide by 4"),
    ],
)
def test_an_illegal_choice_can_be_made_and_says_why_it_is_illegal(visit, option, reason):
    page = visit("one")
    pick(page, "axis 1, length 6", option)
    assert (
        page.locator(".refusal[role=alert]")
        .text_content()
        .startswith(f"This choice is not possible.{reason}")
    )
    assert page.locator("button.device").count() == 0
    assert page.locator("button.observe").is_disabled()
    pick(page, "axis 1, length 6", "unsharded")
    assert page.locator("button.device").count() == 8


def test_everything_works_by_keyboard(visit):
    page = visit("one")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # from the number of devices to the mesh
    page.keyboard.press("ArrowRight")
    assert (
        page.evaluate("document.activeElement.shadowRoot.activeElement.parentNode.innerText") == "x 4 × y 2"
    )
    assert labels(page) == [f"{device}\n{'ABCD'[device // 2]}" for device in range(8)]
    for _group in ("tensor", "axis 0", "axis 1"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "splits two axes" in page.locator(".refusal").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    assert devices(page, "chosen") == ["0"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert devices(page, "chosen") == ["2"]
    assert page.locator("button.device.chosen").evaluate("card => card.matches(':focus-visible')")
    assert page.locator("button.device[aria-pressed=true]").count() == 1


def test_without_a_kernel_the_button_says_what_it_needs(visit):
    page = visit("one")
    assert page.locator("button.observe").is_disabled()
    assert page.locator(".why").inner_text() == (
        "The button needs a running notebook: open this lesson in Jupyter or Colab."
    )


def test_two_explorers_on_a_page_are_independent_and_one_shows_its_stored_reality(visit):
    page = visit("two")
    first, second = page.locator("mesh-layout-explorer").all()
    assert labels(second, "span.device") == ["0\nA", "1\nA", "2\nB", "3\nB", "4\nC", "5\nC"]
    assert second.locator(".verdict").inner_text() == "✓ All 6 real components equal the prediction."
    pick(first, "Mesh", "x 8")
    assert first.locator("button.device .name").all_inner_texts()[7] == "7\nH"
    assert second.locator("button.device").count() == 6
    pick(second, "axis 0, length 6", "y")
    assert second.locator("span.device").count() == 0
    assert second.locator(".verdict").inner_text() == ""


def test_an_explorer_that_moves_in_the_page_keeps_its_choice(visit):
    page = visit("one")
    page.locator("button.device[data-device='6']").click()
    page.evaluate("document.querySelector('h1').before(document.querySelector('mesh-layout-explorer'))")
    assert devices(page, "chosen") == ["6"]
    page.locator("button.device[data-device='1']").click()
    assert devices(page, "chosen") == ["1"]


def test_a_copy_and_a_late_comer_come_to_life(visit):
    page = visit("one")
    page.evaluate("""() => {
      const first = document.querySelector("mesh-layout-explorer");
      document.querySelector("main").append(first.cloneNode(true));
      document.querySelector("main").insertAdjacentHTML("beforeend", first.outerHTML);
    }""")
    assert [each.locator("button.device").count() for each in page.locator("mesh-layout-explorer").all()] == [
        8
    ] * 3


def test_without_scripts_the_picture_stays(chromium, server):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server}one-light.html")
    assert page.locator("mesh-layout-explorer > svg[role=img]").is_visible()
    context.close()


def test_in_a_notebook_clicks_reach_python_and_the_real_components_come_back(visit):
    page = visit("none")
    explorer = MeshLayoutExplorer(observe, global_shape=(6, 4), sharding_specs=["x", "y"])
    explorer.observe_choice()
    state = {"table": explorer.table, "choice": explorer.choice, "observed": {}, "can_observe": True}
    page.evaluate(NOTEBOOK_HOST, [state, explorer.observed])
    page.locator("button.observe").click()
    assert page.evaluate("model.sent") == [{"kind": "observe"}]
    assert page.locator(".verdict").inner_text().startswith("Making the real DTensor.")
    page.locator("button.observe").dispatch_event("click")
    assert page.evaluate("model.sent.length") == 1, "one at a time"
    page.evaluate("answer()")
    assert page.locator(".verdict").inner_text() == "✓ All 8 real components equal the prediction."
    assert page.locator("span.device").nth(7).locator("td").all_inner_texts() == ["15", "19", "23"]
    page.locator("button.device[data-device='3']").click()
    assert page.evaluate("model.get('choice').device") == 3
    assert page.evaluate("model.saved") >= 2
    pick(page, "axis 1, length 4", "unsharded")
    assert page.evaluate("model.get('choice').specs") == ["x", "unsharded"]
    assert page.locator("span.device").count() == 0
    page.evaluate("leave()")
    assert page.evaluate("Object.values(listeners).flat().length") == 0


@pytest.mark.parametrize("theme", STYLES)
@pytest.mark.parametrize("name", ["two", "three-axes", "vector", "illegal"])
def test_has_no_accessibility_violation(visit, name, theme):
    page = visit(name, theme)
    if name != "illegal":
        page.locator("button.device").nth(2).click()
    violations = Axe().run(page).response["violations"]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in violations] == []


@pytest.mark.parametrize("name", ["two", "three-axes", "vector", "illegal"])
def test_fits_a_telephone(visit, name):
    page = visit(name)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    overflowing = page.evaluate("""() => [...document.querySelectorAll("mesh-layout-explorer")]
      .flatMap((each) => [...each.shadowRoot.querySelectorAll(".explorer *")])
      .filter((part) => part.getBoundingClientRect().right > 390.5).map((part) => part.outerHTML)""")
    assert overflowing == []
