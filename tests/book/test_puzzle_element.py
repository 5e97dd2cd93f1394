"""Puzzles on a bare page: playing without a kernel, and what the browser keeps until the next visit."""

from __future__ import annotations

import shutil

import pytest

from tests.book.bare_page import STYLES, check_accessible_and_narrow, write_pages
from tests.book.built_site import SITE
from tests.course import from_lesson

Puzzle = from_lesson("how_long.puzzle_widget", "Puzzle")

SOLVED = (
    '<p><course-solved data-puzzles="12" data-said="{solved} | {par}" data-none="none"></course-solved></p>'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = shutil.copytree(SITE / "assets", tmp_path_factory.mktemp("page") / "assets")  # has the tables
    write_pages(folder, {"two": SOLVED + "".join(Puzzle(number).to_html() for number in (2, 7))})
    return folder


def split(page, axis: str, name: str) -> None:
    puzzle = page.locator("course-puzzle").first
    puzzle.locator("fieldset", has_text=axis).get_by_role("radio", name=name, exact=True).check(force=True)
    puzzle.locator(".puzzle:not(.busy)").wait_for()


def seen(page) -> tuple[str, str]:
    return page.locator(".verdict").first.inner_text(), page.locator("course-solved").inner_text()


def test_a_choice_is_judged_and_the_last_one_and_the_best_are_there_at_the_next_visit(visit):
    page = visit("two")
    assert seen(page) == ("Not solved.", "none | none")
    split(page, "columns", "x")
    assert seen(page) == ("Solved. Another solution reaches par.", "2 | none")
    split(page, "rows", "y")
    assert seen(page) == ("Solved, at par: no solution takes less.", "2 | 2")
    split(page, "columns", "unsharded")
    assert seen(visit("two", "dark")) == ("Not solved.", "2 | 2")
    assert page.locator("fieldset", has_text="rows").first.locator(":checked + span").inner_text() == "y"
    page.evaluate("localStorage.setItem('course-puzzle_2', JSON.stringify({ key: 'of old', best: 1 }))")
    assert seen(visit("two")) == ("Not solved.", "2 | none")


def test_where_the_browser_keeps_nothing_one_can_play_all_the_same(page, server):
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    )
    page.goto(f"{server}two-light.html")
    split(page, "columns", "x")
    assert seen(page) == ("Solved. Another solution reaches par.", "none | none")


@pytest.mark.parametrize("theme", STYLES)
def test_is_accessible_and_fits_a_telephone(visit, theme):
    page = visit("two", theme)
    for summary in page.locator("summary").all():
        summary.click()
    check_accessible_and_narrow(page)
