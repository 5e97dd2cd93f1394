"""Cards and a score on a bare page: choosing by mouse and keys, verdicts, events, themes, telephones."""

from __future__ import annotations

import re
from functools import partial

import pytest

from course_lib.exercises import questions
from course_lib.exercises.predictions import predict, score
from tests.book.bare_page import NOTEBOOK_HOST, STYLES, answered, check_accessible_and_narrow, write_pages
from tests.small_course import among_lessons
from tools.book.explorers import write_tables

# Notes each event as the page hears it, at its very top.
LISTEN = """() => { window.heard = []; window.addEventListener("course-predicted",
  ({ detail, target, composed }) => heard.push([detail.id, detail.right, target.localName, composed])); }"""
OUTLINE = "label => [getComputedStyle(label).outlineStyle, getComputedStyle(label).outlineColor]"
FOCUSED = "document.activeElement.shadowRoot.activeElement"


@pytest.fixture(scope="module", autouse=True)
def small_lesson():
    with among_lessons():
        yield


@pytest.fixture(autouse=True)
def nothing_kept():
    questions.choices.clear()
    yield
    questions.choices.clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_lesson):
    folder = tmp_path_factory.mktemp("page")
    made = {name: predict(f"fixture-{name}") for name in ("eight", "none", "seven")}
    write_tables(["en"], folder, {card.name: partial(predict, card.name) for card in made.values()})
    cards = {name: card.to_html() for name, card in made.items()}
    write_pages(
        folder, {**cards, "all": "".join(cards.values()) + score("fixture")._repr_html_(), "none": ""}
    )
    return folder


def answer(place, text: str) -> None:
    place.locator("label").filter(has_text=re.compile(f"^{re.escape(text)}$")).click()


def verdict(place) -> str:
    return place.locator(".verdict").inner_text()


def test_each_answer_has_its_verdict_and_the_page_hears_of_it(visit):
    page = visit("eight")
    page.evaluate(LISTEN)
    group = page.get_by_role("group", name="How many of 8 rows?")
    assert group.get_by_role("radio").count() == 3
    assert page.locator(".verdict[role=status]").count() == 1
    assert verdict(page) == ""
    for text, said in (
        ("2", "✗ A quarter."),
        ("4", "✓ Right."),  # why, says what was measured
        ("8", "✗ All."),
    ):
        answer(page, text)
        assert verdict(page) == said
        assert page.locator(":checked + span").inner_text() == text
        heard = page.evaluate("heard.splice(0)")
        assert heard == [["fixture-eight", said[0] == "✓", "course-prediction", True]]


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_arrows_move_and_a_key_chooses(visit, key):
    page = visit("eight")
    page.evaluate(LISTEN)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(f"{FOCUSED}.parentNode.innerText") == "8"
    assert page.locator(".confirm[role=status]").inner_text() == "Press Enter to choose this answer."
    assert page.locator("label:has(:checked)").evaluate(OUTLINE) == [
        "solid",
        "rgb(34, 40, 50)",
    ]  # ink
    assert (verdict(page), page.evaluate("heard")) == ("", [])
    page.keyboard.press(key)
    assert verdict(page) == "✗ All."
    assert page.evaluate("heard") == [["fixture-eight", False, "course-prediction", True]]
    assert page.locator(".confirm").inner_text() == ""
    assert page.evaluate(f"{FOCUSED}.parentNode.innerText") == "8"


def test_cards_of_one_page_are_independent_and_the_score_counts_first_choices(visit):
    page = visit("all")
    cards, counted = page.locator("course-prediction"), page.locator("course-score")
    assert counted.inner_text() == "You made no prediction in this lesson."
    answer(cards.nth(0), "8")
    assert counted.inner_text() == "Predictions made: 1 of 4. Right: 0."
    answer(cards.nth(0), "4")
    assert counted.inner_text() == "Predictions made: 1 of 4. Right: 0."
    answer(cards.nth(2), "3")
    assert counted.inner_text() == "Predictions made: 2 of 4. Right: 1."
    assert [verdict(card)[:1] for card in cards.all()] == ["✓", "", "✓"]
    answer(cards.nth(1), "no row")
    assert counted.inner_text() == "Predictions made: 3 of 4. Right: 2."


def test_without_scripts_the_question_stays(scriptless_page, server):
    scriptless_page.goto(f"{server}all-light.html")
    card = scriptless_page.locator("course-prediction").first
    assert card.inner_text().splitlines()[-3:] == ["2", "4", "8"]
    assert scriptless_page.locator("course-score").inner_text() == "You made no prediction in this lesson."


def test_in_a_notebook_a_card_does_not_grow_when_it_is_answered(visit):
    """What lies below would move away from under the pointer, and lose the reader's next click."""
    page = visit("none")
    card = predict("fixture-eight")
    page.evaluate(NOTEBOOK_HOST, card.view)
    heights = [page.locator("#notebook").bounding_box()["height"]]
    answer(page, "2")
    heights.append(page.locator("#notebook").bounding_box()["height"])
    answered(page, card)
    assert verdict(page) == "Kept. Run the next cell."
    assert [*heights, page.locator("#notebook").bounding_box()["height"]] == [heights[0]] * 3


def test_in_a_notebook_keys_that_the_card_uses_are_not_shortcuts(visit):
    page = visit("none")
    page.evaluate(NOTEBOOK_HOST, predict("fixture-seven").view)
    page.keyboard.press("Tab")
    for key, jupyterlab_hears_it in (
        ("1", False),
        ("ArrowDown", False),
        ("Enter", False),
        ("Shift+Enter", True),
        ("Control+s", True),
    ):
        page.keyboard.press(key)
        suppressed = page.locator("#notebook > [data-lm-suppress-shortcuts]").count()
        assert suppressed == (not jupyterlab_hears_it), key


@pytest.mark.parametrize("theme", STYLES)
def test_open_wrong_right_or_with_a_field_it_is_accessible_and_fits_a_telephone(visit, theme):
    page = visit("all", theme)
    cards = page.locator("course-prediction")
    answer(cards.nth(0), "4")
    answer(cards.nth(1), "one row")
    page.evaluate(NOTEBOOK_HOST, predict("fixture-seven").view)
    check_accessible_and_narrow(page)
