"""The strategy explorer on a bare page and in a notebook: its questions, picture, reasons and program."""

from __future__ import annotations

import pytest

from course_lib.i18n import set_language
from lessons.lesson_09_strategies.code import code_of
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_09_strategies.strategy import Situation
from lessons.lesson_09_strategies.strategy_picture import places_lines
from lessons.lesson_09_strategies.strategy_places import places_of
from tests.book.bare_page import pick, write_pages
from tools.book.explorers import write_explorer_tables

SEVERAL_MACHINES = Situation("GPUs", several_machines=True)
FOCUSED = "document.querySelector('course-explorer').shadowRoot.activeElement.parentNode.innerText"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_explorer_tables(["ja", "en"], folder, [StrategyExplorer])
    pages = {"en": StrategyExplorer().to_html(), "none": ""}
    set_language("ja")
    pages["ja"] = StrategyExplorer().to_html()
    set_language("en")
    write_pages(folder, pages)
    return folder


def strategy(page) -> str:
    return page.locator(".fact dd").inner_text()


def picture(page) -> str:
    """Returns what the picture says to those who cannot see it."""
    return page.locator(".panel [role=img]").get_attribute("aria-label")


def spoken(situation: Situation) -> str:
    return "\n".join(places_lines(places_of(situation)))


def drawn(page) -> str:
    return page.locator(".panel svg").inner_html()


def questions(page) -> list[str]:
    return page.locator("legend").all_inner_texts()


def test_an_answer_changes_strategy_reason_picture_and_program_without_a_kernel(visit):
    page = visit("en")
    page.get_by_text("The program", exact=True).click()
    assert strategy(page) == "MirroredStrategy"
    assert picture(page) == spoken(Situation("GPUs"))
    assert page.locator("pre").text_content() == code_of(Situation("GPUs"))
    before = drawn(page)
    pick(page, "Machines", "several")
    assert strategy(page) == "MultiWorkerMirroredStrategy"
    assert page.locator(".told").inner_text() == SEVERAL_MACHINES.advice.rule
    assert picture(page) == spoken(SEVERAL_MACHINES)
    assert drawn(page) != before
    assert page.locator("pre").is_visible()
    assert page.locator("pre").text_content() == code_of(SEVERAL_MACHINES)


def test_what_no_strategy_does_is_refused_with_the_reason_and_can_be_taken_back(visit):
    page = visit("en")
    pick(page, "Devices of a machine", "TPU")
    pick(page, "Updates", "asynchronous")
    refusal = page.locator(".refusal[role=alert]").inner_text()
    assert refusal.startswith("This choice is not possible.\nNo strategy trains asynchronously on TPUs.")
    assert "Allowed:" in refusal
    assert page.locator(".panel, .fact, pre").count() == 0
    pick(page, "Updates", "synchronous")
    assert strategy(page) == "TPUStrategy"
    assert picture(page) == spoken(Situation("TPU"))
