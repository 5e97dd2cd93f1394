"""What every explorer promises on a page and in a notebook: keys, languages, widths, accessibility."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest

from course_lib.i18n import set_language
from course_lib.widgets.controls import Field, with_value
from tests.book.bare_page import NOTEBOOK_HOST, answered, check_accessible_and_narrow, pick, write_pages
from tests.book.built_site import SITE
from tools.book.explorers import widgets

LANGUAGES = ("en", "ja")
EXPLORERS = {name: maker for name, maker in widgets().items() if isinstance(maker, type)}
# One module hears the keys of all: in each run a few of them, with every kind of control.
OFTEN = [("mesh_layout", "en"), ("ring", "en"), ("scale_out", "en"), ("cluster", "ja")]
each_explorer = pytest.mark.parametrize("name", EXPLORERS)
FOCUSED = "document.querySelector('course-explorer').shadowRoot.activeElement"
# What two hosts show, each where it stands: texts, and all attributes but what a host notes for itself.
SHOWN = """host => [...document.querySelector(host).shadowRoot.querySelectorAll(".explorer, .explorer *")]
  .map((part) => [part.tagName, ...[...part.attributes].map(({ name, value }) => `${name}=${value}`)
    .filter((each) => !each.startsWith("name=")).sort(), part.children.length ? "" : part.textContent])"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = shutil.copytree(SITE / "assets", tmp_path_factory.mktemp("page") / "assets")  # has the tables
    pages = {"none": ""}
    for language in LANGUAGES:
        set_language(language)
        pages |= {f"{name}-{language}": make().to_html() for name, make in EXPLORERS.items()}
    set_language("en")
    write_pages(folder, pages)
    return folder


def settle(page) -> None:
    page.locator(".explorer:not(.busy)").first.wait_for()


@pytest.mark.parametrize(
    ("name", "language"),
    [
        pytest.param(name, code, marks=() if (name, code) in OFTEN else pytest.mark.drill_all)
        for name in EXPLORERS
        for code in LANGUAGES
    ],
)
def test_a_key_makes_a_choice_keeps_the_focus_and_shows_what_python_would(visit, name, language):
    set_language(language)
    explorer, page = EXPLORERS[name](), visit(f"{name}-{language}")
    page.keyboard.press("Tab")  # to the first question
    page.keyboard.press("ArrowRight" if page.evaluate(f"{FOCUSED}.checked") else "Space")
    settle(page)
    chosen = page.evaluate(f"(({{ path, value }}) => [path, value])({FOCUSED}.dataset)")
    path, value = map(json.loads, chosen)
    state = explorer.page_settled(with_value(explorer.state, tuple(path), value))
    assert page.evaluate(f"{FOCUSED}.checked")
    page.evaluate(NOTEBOOK_HOST, explorer.page_tree(state))
    assert page.evaluate(SHOWN, "course-explorer") == page.evaluate(SHOWN, "#notebook > div")


@each_explorer
@pytest.mark.parametrize(("language", "theme"), [("en", "dark"), ("ja", "light")])
def test_it_is_accessible_and_fits_a_telephone(visit, name, language, theme):
    page = visit(f"{name}-{language}", theme)
    if language == "ja":  # in English what the reader meets first, in Japanese what other choices lead to
        for at in itertools.count():  # a choice may take away or add groups
            groups = page.locator("fieldset:has(input[type=radio])")
            if at >= groups.count():
                break
            groups.nth(at).locator("input[type=radio]").last.dispatch_event("click")
            settle(page)
            if page.locator(".refusal").count():
                break
    for summary in page.locator("summary").all():
        summary.click()
    check_accessible_and_narrow(page)


def has_a_field(name: str) -> bool:
    """Returns whether the reader can type something into an explorer, which pages do not offer."""
    explorer = EXPLORERS[name]()
    return any(
        isinstance(control, Field)
        for group in explorer.controls(explorer.state)
        for control in group.controls
    )


# The module is the same for all: what is left to see is that fields are accessible.
@pytest.mark.parametrize("name", filter(has_a_field, EXPLORERS))
def test_in_a_notebook_a_choice_is_one_message_and_python_follows(visit, name):
    explorer, page = EXPLORERS[name](), visit("none")
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    option = page.locator("input[type=radio]:not(:checked)").first
    path, value = (json.loads(option.get_attribute(f"data-{each}")) for each in ("path", "value"))
    option.dispatch_event("click")
    assert page.evaluate("model.sent") == [{"kind": "change", "path": path, "value": value}]
    answered(page, explorer)
    assert explorer.state == explorer.settled(with_value(EXPLORERS[name]().state, tuple(path), value))
    assert page.locator(".busy").count() == 0
    check_accessible_and_narrow(page)


# --- What one of them alone does


def test_ring_a_key_on_a_button_makes_one_step_and_keeps_the_focus(visit):
    page = visit("ring-en")
    forward, heading = page.get_by_role("button", name="Forward →"), page.locator("h3")
    forward.focus()
    for at, key in ((1, "Enter"), (2, "Space")):
        page.keyboard.press(key)
        settle(page)
        assert heading.inner_text().endswith(f": step {at} of 6")
    assert page.evaluate(f"{FOCUSED}.value") == "Forward →"
    for at, idle in ((1, None), (0, "true"), (0, "true")):
        back = page.get_by_role("button", name="← Back")
        back.dispatch_event("click")
        settle(page)
        assert heading.inner_text().endswith(f": step {at} of 6")
        assert back.get_attribute("aria-disabled") == idle


def test_ring_in_a_notebook_presses_that_come_before_the_answer_all_count(visit):
    page, explorer = visit("none"), EXPLORERS["ring"]()
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    for _press in range(2):
        page.get_by_role("button", name="Forward →").click()
    answered(page, explorer)
    assert explorer.state["step"] == 2
    assert page.locator("h3").inner_text().endswith(": step 2 of 6")


def test_cluster_is_answered_by_keyboard_though_questions_go(visit):
    page = visit("cluster-en")
    label = f"{FOCUSED}.parentNode.innerText"
    for _stop in ("workers", "servers", "mistake"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.locator(".panel").wait_for(state="detached")
    assert page.evaluate(label) == "one address twice"
    page.keyboard.press("ArrowLeft")
    page.locator(".panel").wait_for()
    assert page.evaluate(label) == "no mistake"
    for _stop in ("evaluator", "this task"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    page.locator(".explorer .this text", has_text="worker 1").wait_for()


def test_reviews_in_a_notebook_are_answered_at_enter_and_what_is_being_typed_stays(visit):
    page, explorer = visit("none"), EXPLORERS["reviews"](lambda _texts: [0.12])
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    field = page.get_by_role("textbox")
    field.click()
    page.keyboard.type("What a film!")
    assert page.evaluate("model.sent") == []
    page.keyboard.press("Enter")
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["review"], "value": "What a film!"}]
    answered(page, explorer)
    assert page.get_by_role("img").get_attribute("aria-label") == "Probability: bad 88 %, good 12 %"
    assert field.input_value() == "What a film!"
    page.keyboard.type(" Yes.")
    page.evaluate("view => answer(view)", explorer.view)  # an answer that comes late
    assert field.input_value() == "What a film! Yes."
    page.keyboard.press("Enter")
    answered(page, explorer)
    assert explorer.state == {"review": "What a film! Yes."}


def test_scale_out_a_slider_and_a_switch_follow_the_keys_and_another_network_comes_from_another_table(visit):
    page, loaded = visit("scale_out-en"), []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert slider.get_attribute("aria-valuetext") == "6.25 GB/s (× 0.25)"
    zero = page.get_by_role("checkbox", name="ZeRO")
    zero.focus()
    for is_on, key in ((True, "Space"), (False, "Enter"), (True, "Enter"), (False, "Space")):
        page.keyboard.press(key)
        settle(page)
        assert zero.is_checked() == is_on
    assert page.evaluate(f"{FOCUSED}.type") == "checkbox"
    assert loaded == []
    pick(page, "Transformer", "34 billion parameters")
    page.locator(".verdict", has_text="34 billion parameters on 64 A100").wait_for()
    assert loaded == ["scale_out-34-A100.en.json"]
    assert slider.get_attribute("aria-valuetext") == "6.25 GB/s (× 0.25)"


def test_scale_out_in_a_notebook_a_slider_sends_the_value_of_its_place(visit):
    page, explorer = visit("none"), EXPLORERS["scale_out"]()
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    page.get_by_role("slider").fill("4")
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["links"], "value": 4.0}]
    answered(page, explorer)
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "100 GB/s (× 4)"
    check_accessible_and_narrow(page)
