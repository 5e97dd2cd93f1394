"""Puzzles on a bare page: playing without a kernel, and what the browser keeps until the next visit."""

from __future__ import annotations

import shutil

import pytest

from lessons.scale.puzzles.puzzle_widget import Puzzle
from tests.book.bare_page import STYLES, check_accessible_and_narrow, write_pages
from tests.book.built_site import SITE

SOLVED = (
    '<p><course-solved data-puzzles="16" data-said="{solved} | {par}" data-none="none"></course-solved></p>'
)
OF_EACH_KIND = (2, 7, 12, 15)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = shutil.copytree(SITE / "assets", tmp_path_factory.mktemp("page") / "assets")  # has the tables
    elements = {number: Puzzle(number).to_html() for number in OF_EACH_KIND}
    pages = {str(number): SOLVED + element for number, element in elements.items()}
    write_pages(folder, {**pages, "far": f'<div style="height: 500vh"></div>{elements[2]}'})
    return folder


def choose(page, question: str, name: str) -> None:
    puzzle = page.locator("course-puzzle").first
    options = puzzle.locator("fieldset", has_text=question).first
    options.get_by_role("radio", name=name, exact=True).check(force=True)
    puzzle.locator(".puzzle:not(.busy)").wait_for()


def seen(page) -> tuple[str, str]:
    return page.locator(".verdict").first.inner_text(), page.locator("course-solved").inner_text()


def test_a_choice_is_judged_and_the_last_one_and_the_best_are_there_at_the_next_visit(visit):
    page = visit("2")
    assert seen(page) == ("Not solved.", "none | none")
    choose(page, "columns", "x")
    assert seen(page) == ("Solved. Another solution reaches par.", "2 | none")
    choose(page, "rows", "y")
    assert seen(page) == ("Solved, at par: no solution takes less.", "2 | 2")
    choose(page, "columns", "unsharded")
    assert seen(visit("2", "dark")) == ("Not solved.", "2 | 2")
    assert page.locator("fieldset", has_text="rows").first.locator(":checked + span").inner_text() == "y"
    page.evaluate("localStorage.setItem('course-puzzle_2', JSON.stringify({ key: 'of old', best: 1 }))")
    assert seen(visit("2")) == ("Not solved.", "2 | none")


def test_where_the_browser_keeps_nothing_one_can_play_all_the_same(page, server):
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    )
    page.goto(f"{server}2-light.html")
    choose(page, "columns", "x")
    assert seen(page) == ("Solved. Another solution reaches par.", "none | none")


def test_a_plan_is_found_by_keyboard(visit):
    page = visit("15")
    for presses in (0, 2, 2, 1):  # each question, and how far to go: 8, 8, 48 and two chunks
        page.keyboard.press("Tab")
        for _press in range(presses):
            page.keyboard.press("ArrowRight")
            page.locator(".puzzle:not(.busy)").wait_for()
    assert seen(page) == ("Solved. Another solution reaches par.", "15 | none")


def test_a_key_lights_one_exchange_after_the_other_and_says_which(visit):
    page = visit("7")
    choose(page, "batch", "x")
    page.locator(".moment").focus()
    said, lit = page.locator(".lit_line"), page.locator("[data-moment].lit")
    assert (said.inner_text(), lit.count()) == ("", 0)
    for at, tensor in enumerate(("loss", "gradient of b3")):
        page.keyboard.press("ArrowRight")
        assert said.inner_text().startswith(f"{tensor}: all-reduce over x, payload: ")
        assert [each.get_attribute("data-moment") for each in lit.all()] == [str(at)]
    choose(page, "batch", "unsharded")  # and there is nothing to be lit
    choose(page, "batch", "x")
    assert lit.count() == 1
    page.locator(".moment").press("Home")
    assert (said.inner_text(), lit.count()) == ("", 0)


def test_a_puzzle_is_loaded_when_the_reader_comes_near(visit):
    page = visit("far")
    assert page.locator(".puzzle").count() == 0
    page.mouse.wheel(0, 5000)
    page.locator(".puzzle").wait_for()


@pytest.mark.parametrize("theme", STYLES)
@pytest.mark.parametrize("number", OF_EACH_KIND)
def test_is_accessible_and_fits_a_telephone(visit, number, theme):
    page = visit(str(number), theme)
    for group in page.locator("fieldset").all():
        group.locator("input").last.dispatch_event("click")
        page.locator(".puzzle:not(.busy)").wait_for()
    check_accessible_and_narrow(page)
