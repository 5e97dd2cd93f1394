"""The strategy explorer on a bare page and in a notebook: its questions, picture, reasons and program."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from course_lib.i18n import set_language
from lessons.lesson_09_strategies.code import code_of
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_09_strategies.strategy import Situation
from lessons.lesson_09_strategies.strategy_picture import places_lines
from lessons.lesson_09_strategies.strategy_places import places_of
from tests.book.bare_page import NOTEBOOK_HOST, OVERFLOWING, STYLES, answered, pick, write_pages
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


def test_where_variables_are_is_asked_only_where_there_is_a_choice(visit):
    page = visit("en")
    pick(page, "Variables", "on the CPU")
    assert strategy(page) == "CentralStorageStrategy"
    pick(page, "Devices of a machine", "one GPU")
    assert "Variables" not in questions(page)
    assert strategy(page) == "OneDeviceStrategy"
    pick(page, "Devices of a machine", "several GPUs")
    assert "Variables" in questions(page)
    assert strategy(page) == "MirroredStrategy"


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


def test_where_fit_fails_it_says_so_and_shows_a_loop(visit):
    page = visit("en")
    pick(page, "Updates", "asynchronous")
    assert "fit of Keras 3 fails under ParameterServerStrategy." in page.locator(".verdict").inner_text()
    assert page.locator("summary").inner_text() == "The program, with a custom loop"
    pick(page, "Keras", "tf_keras")
    assert page.locator(".verdict").count() == 0
    assert page.locator("summary").inner_text() == "The program"


def test_it_is_answered_by_keyboard(visit):
    page = visit("en")
    page.keyboard.press("Tab")  # to the devices
    page.keyboard.press("ArrowRight")
    page.locator(".fact", has_text="TPUStrategy").wait_for()
    assert page.evaluate(FOCUSED) == "TPU"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # to the updates
    page.keyboard.press("ArrowRight")
    page.locator(".refusal").wait_for()
    assert page.evaluate(FOCUSED) == "asynchronous"
    page.keyboard.press("ArrowLeft")
    page.locator(".fact", has_text="TPUStrategy").wait_for()
    for _stop in ("written with", "Keras", "picture", "program"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("pre").is_visible()


def test_it_speaks_japanese_also_where_it_refuses(visit):
    page = visit("ja")
    pick(page, "マシンの台数", "複数台")
    assert strategy(page) == "MultiWorkerMirroredStrategy"
    set_language("ja")
    assert page.locator(".told").inner_text() == SEVERAL_MACHINES.advice.rule
    assert picture(page) == spoken(SEVERAL_MACHINES)
    assert page.locator("pre").text_content() == code_of(SEVERAL_MACHINES)
    pick(page, "マシン1台あたりのデバイス", "TPU")
    pick(page, "変数の更新", "非同期")
    assert "TPU" in page.locator(".refusal").inner_text()
    assert not {"strategy", "choice", "Allowed"} & set(page.locator(".refusal").inner_text().split())


def test_in_a_notebook_an_answer_is_one_message_and_python_follows(visit):
    page = visit("none")
    explorer = StrategyExplorer()
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    page.locator("label", has_text="tf_keras").click()
    assert page.evaluate("model.sent") == [{"kind": "change", "path": ["keras"], "value": "tf_keras"}]
    answered(page, explorer)
    assert explorer.situation == Situation("GPUs", keras="tf_keras")
    assert page.locator("pre").text_content() == code_of(explorer.situation)


@pytest.mark.parametrize(("name", "theme"), list(zip(["ja", "en"], STYLES, strict=True)))
def test_it_is_accessible_and_fits_a_telephone(visit, name, theme):
    page = visit(name, theme)
    page.locator("summary").click()
    for refused in (False, True):
        if refused:
            page.locator("input[data-value='\"TPU\"']").dispatch_event("click")
            page.locator("input:checked[data-value='\"TPU\"']").wait_for()
            page.locator(".explorer:not(.busy) input[data-value='false']").last.dispatch_event("click")
            page.locator(".refusal").wait_for()
        violations = Axe().run(page).response["violations"]
        assert [(found["id"], found["nodes"][0]["html"][:200]) for found in violations] == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate(OVERFLOWING) == []
