"""What a prediction reveals, on a page of the book: folded, until the reader chooses or opens it."""

from __future__ import annotations

import re

import pytest

from tests.book.built_site import watch
from tests.book.test_site import PHONE, choose_theme, violations

WORDS = "The answer"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture
def lesson(page, small_address):
    """Returns a lesson's page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, small_address)
    page.goto(f"{small_address}en/fixture.html", wait_until="networkidle")
    yield page
    assert trouble == []


def choose(page, number: int, answer: str) -> None:
    """Chooses an answer in one of the four cards."""
    card = page.locator("course-prediction").nth(number - 1)
    card.locator("label").filter(has_text=re.compile(f"^{answer}$")).click()


def seen(page) -> list[bool]:
    """Returns which of the four measurements the reader sees."""
    return [each.is_visible() for each in page.locator("details.revealed .cell_output").all()]


def test_what_is_measured_is_folded_and_nothing_else_and_on_paper_it_stands_open(lesson):
    assert seen(lesson) == [False] * 4
    assert lesson.locator("details .cell_output").count() == 4
    known = lesson.locator("details.known_code .cell_input")
    assert (known.count(), known.is_visible()) == (1, False)
    for element in lesson.locator(":not(details) > .cell_input, course-prediction").all():
        assert element.is_visible()
    assert lesson.locator("details.revealed summary").all_inner_texts() == [WORDS] * 4
    lesson.emulate_media(media="print")
    assert seen(lesson) == [True] * 4


def test_a_choice_opens_what_follows_its_card_and_nothing_else_and_another_leaves_it_open(lesson):
    for number, answer, expected in (
        (1, "8", [True, False]),
        (1, "4", [True, False]),
        (2, r"\(2, 3\)", [True, True]),
    ):
        choose(lesson, number, answer)
        assert seen(lesson) == [*expected, False, False]


def test_why_the_right_answer_is_right_is_said_once_in_what_the_choice_opens(lesson):
    verdict, why = lesson.locator("course-prediction .verdict").first, lesson.get_by_text("Half.", exact=True)
    for answer, said in (("8", "✗ All."), ("4", "✓ Right.")):
        choose(lesson, 1, answer)
        assert verdict.inner_text() == said
        assert [each.is_visible() for each in why.all()] == [True]


def test_without_scripts_a_click_opens_it(scriptless_page, small_address):
    scriptless_page.goto(f"{small_address}en/fixture.html")
    scriptless_page.locator("details.revealed summary").first.click()
    assert seen(scriptless_page) == [True, False, False, False]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_it_can_be_read_in_every_colour_and_on_a_telephone(lesson, theme):
    choose_theme(lesson, theme)
    lesson.set_viewport_size(PHONE)
    for number, answer in enumerate(("8", r"\(3, 2\)", "4", "one row"), 1):
        choose(lesson, number, answer)
    lesson.wait_for_timeout(300)
    assert violations(lesson) == []
    assert lesson.evaluate(WIDTH) <= PHONE["width"]
