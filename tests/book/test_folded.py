"""What a prediction reveals, on a page of the book: folded, until the reader chooses or opens it."""

from __future__ import annotations

import re

import pytest

from tests.book import standin
from tests.book.built_site import served, watch
from tests.book.test_site import PHONE, choose_theme, violations

LESSON = f"{standin.LESSONS[0]}.html"
WORDS = "The answer"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def folded_site(site):
    with served(site) as address:
        yield address


@pytest.fixture
def lesson(page, folded_site):
    """Returns a lesson's page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, folded_site)
    page.goto(f"{folded_site}en/{LESSON}", wait_until="networkidle")
    yield page
    assert trouble == []


def choose(page, number: int, answer: str) -> None:
    """Chooses an answer in one of the two cards."""
    card = page.locator("course-prediction").nth(number - 1)
    card.locator("label").filter(has_text=re.compile(f"^{answer}$")).click()


def seen(page) -> list[bool]:
    """Returns which of the two measurements the reader sees."""
    return [page.locator(f"details.revealed pre >> nth={number}").is_visible() for number in (0, 1)]


def test_what_is_measured_is_folded_and_nothing_else_and_on_paper_it_stands_open(lesson):
    assert seen(lesson) == [False, False]
    assert lesson.locator("details.revealed").count() == 2
    assert lesson.locator("details .cell_output").count() == 2
    for element in lesson.locator(".cell_input, course-prediction").all():
        assert element.is_visible()
    assert lesson.locator("details.revealed summary").all_inner_texts() == [WORDS] * 2
    lesson.emulate_media(media="print")
    assert seen(lesson) == [True, True]


def test_a_choice_opens_what_follows_its_card_and_nothing_else_and_another_leaves_it_open(lesson):
    for number, answer, expected in (
        (1, "0", [True, False]),
        (1, "1", [True, False]),
        (2, "2", [True, True]),
    ):
        choose(lesson, number, answer)
        assert seen(lesson) == expected


def test_why_the_right_answer_is_right_is_said_once_in_what_the_choice_opens(lesson):
    verdict, why = lesson.locator("course-prediction .verdict").first, lesson.get_by_text(standin.WHY)
    for answer, said in (("0", "✗ Nothing is not split."), ("1", "✓ Right.")):
        choose(lesson, 1, answer)
        assert verdict.inner_text() == said
        assert [each.is_visible() for each in why.all()] == [True, False]  # of this card, and of the other


def test_the_reader_opens_and_folds_it_by_keyboard(lesson):
    lesson.locator("details.revealed summary").nth(1).focus()
    for expected in (True, False):
        lesson.keyboard.press("Enter")
        assert seen(lesson) == [False, expected]


def test_without_scripts_a_click_opens_it(scriptless_page, folded_site):
    scriptless_page.goto(f"{folded_site}en/{LESSON}")
    scriptless_page.locator("details.revealed summary").first.click()
    assert seen(scriptless_page) == [True, False]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_it_can_be_read_in_every_colour_and_on_a_telephone(lesson, theme):
    choose_theme(lesson, theme)
    lesson.set_viewport_size(PHONE)
    for number in (1, 2):
        choose(lesson, number, "0")
    lesson.wait_for_timeout(300)
    assert violations(lesson) == []
    assert lesson.evaluate(WIDTH) <= PHONE["width"]
