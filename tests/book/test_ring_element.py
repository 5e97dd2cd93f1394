"""The ring stepper on a bare page and in a notebook: its buttons, keys and steps."""

from __future__ import annotations

import pytest

from lessons.lesson_02_communication.ring_explorer import RingExplorer
from tests.book.bare_page import NOTEBOOK_HOST, answered, write_pages
from tools.book.explorers import write_explorer_tables

BACK, FORWARD = "← Back", "Forward →"
FOCUSED = "document.querySelector('{host}').shadowRoot.activeElement.value"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_explorer_tables(["en"], folder, [RingExplorer])
    write_pages(
        folder,
        {
            "four": RingExplorer().to_html(),
            "eight": RingExplorer(num_devices=8, step=5).to_html(),
            "none": "",
        },
    )
    return folder


def button(place, name: str):
    return place.get_by_role("button", name=name)


def settle(page) -> None:
    page.locator(".explorer:not(.busy)").first.wait_for()


def step(page) -> str:
    """Returns the step at which the ring is, out of the heading of its picture."""
    return page.locator("h3").inner_text().split(": step ")[1]


def test_the_buttons_step_forward_and_back_without_a_kernel(visit):
    page = visit("four")
    assert step(page) == "0 of 6"
    assert page.locator(".explorer .sent").count() == 0
    for _press in range(2):
        button(page, FORWARD).click()
        settle(page)
    assert step(page) == "2 of 6"
    assert page.locator(".explorer .sent").count() == 5
    assert "Reduce-scatter, step 2 of 3" in page.locator(".told").inner_text()
    button(page, BACK).click()
    settle(page)
    assert step(page) == "1 of 6"


def test_a_button_at_its_end_changes_nothing(visit):
    page = visit("four")
    button(page, BACK).dispatch_event("click")
    settle(page)
    assert step(page) == "0 of 6"
    assert button(page, BACK).get_attribute("aria-disabled") == "true"
    assert button(page, FORWARD).get_attribute("aria-disabled") is None


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_key_on_a_button_makes_one_step_and_keeps_the_focus(visit, key):
    page = visit("four")
    button(page, FORWARD).focus()
    for at in (1, 2, 3):
        page.keyboard.press(key)
        settle(page)
        assert step(page) == f"{at} of 6"
    assert page.evaluate(FOCUSED.format(host="course-explorer")) == FORWARD


def test_in_a_notebook_each_press_is_one_message(visit):
    page = visit("none")
    explorer = RingExplorer()
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    button(page, FORWARD).click()
    button(page, FORWARD).click()
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["move"], "value": 1}] * 2
    answered(page, explorer)
    assert explorer.moment.step == 2
    assert step(page) == "2 of 6"
    button(page, FORWARD).press("Enter")
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["move"], "value": 1}]
