"""Bare pages with widgets on them, which the fixture `visit` opens."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from course_lib.widgets.base import MODULE, TreeWidget

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Widgets</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>{style}</style></head>
<body><main><h1>Widgets</h1><h2>One</h2>{widgets}</main>
<script type="module" src="widget.js"></script></body></html>"""
STYLES = {
    "light": "body { background: #FFF; color: #222832 }",
    "dark": ":root { color-scheme: dark } body { background: #14181E; color: #CED6DD }",
}
# A kernel without Jupyter: the module's notebook host gets a model, and the test answers in Python.
NOTEBOOK_HOST = """async (view) => {
  const host = (await import("./widget.js")).default;
  const listeners = {};
  const model = { view, sent: [], get: (name) => model[name], send(message) { this.sent.push(message); },
    on: (event, call) => (listeners[event] ??= []).push(call),
    off: (event, call) => listeners[event].splice(listeners[event].indexOf(call), 1) };
  const el = document.querySelector("main").appendChild(document.createElement("div"));
  el.id = "notebook";
  window.model = model;
  window.listeners = listeners;
  window.leave = host.render({ model, el });
  window.answer = (view) => { model.view = view; listeners["change:view"].forEach((call) => call()); };
}"""
# What of the widgets leaves a telephone at its right; what the reader can move may be wider.
OVERFLOWING = """() => [...document.querySelectorAll("course-explorer, course-prediction, course-puzzle")]
  .flatMap((each) => [...each.shadowRoot.querySelectorAll(".widget *")])
  .filter((part) => !part.parentNode.closest(".flow:not(.fits), .listing"))
  .filter((part) => part.getBoundingClientRect().right > 390.5).map((part) => part.outerHTML)"""


def pick(place: Page | Locator, group: str, option: str) -> None:
    """Clicks an option of a group and waits until the view that it leads to is there."""
    fieldset = place.locator("fieldset").filter(has_text=group).first
    fieldset.locator("label").filter(has_text=re.compile(f"^{re.escape(option)}$")).click()
    place.locator(".explorer:not(.busy)").first.wait_for()


def check_accessible_and_narrow(page: Page) -> None:
    """Holds a page to what axe finds, and then to the width of a telephone."""
    violations = Axe().run(page).response["violations"]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in violations] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(OVERFLOWING) == []


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Writes a light and a dark page for the HTML of each name, and the module beside them."""
    shutil.copy(MODULE, folder)
    for name, widgets in pages.items():
        for theme, style in STYLES.items():
            (folder / f"{name}-{theme}.html").write_text(PAGE.format(style=style, widgets=widgets), "utf-8")


def answered(page: Page, widget: TreeWidget) -> None:
    """Lets the widget in Python hear what the module sent, and the module see the new view."""
    for message in page.evaluate("model.sent.splice(0)"):
        widget._answer(widget, message, [])  # at once: Playwright's loop runs here, as a kernel's would
    page.evaluate("view => answer(view)", widget.view)
