"""The TF_CONFIG builder on a bare page and in a notebook: its choices, its JSON to copy, its mistakes."""

from __future__ import annotations

import json

import pytest

from course_lib import CourseError
from course_lib.i18n import set_language
from lessons.lesson_11_many_processes import cluster_mistakes as mistakes
from lessons.lesson_11_many_processes.cluster_picture import cluster_lines
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.explorer import ClusterExplorer
from tests.book.bare_page import pick, write_pages
from tools.book.explorers import write_explorer_tables

HOSTS = [f"host{number}:12345" for number in range(6)]
SERVED = ClusterSpec({"chief": HOSTS[:1], "worker": HOSTS[1:4], "ps": HOSTS[4:]})
FOCUSED = "document.querySelector('course-explorer').shadowRoot.activeElement.parentNode.innerText"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_explorer_tables(["ja", "en"], folder, [ClusterExplorer])
    pages = {
        "served": ClusterExplorer().to_html(),
        "two": ClusterExplorer(2, 0, chief=False).to_html(),
        "none": "",
    }
    set_language("ja")
    pages["ja"] = ClusterExplorer().to_html()
    set_language("en")
    write_pages(folder, pages)
    return folder


LISTENS = """Object.defineProperty(navigator, "clipboard",
  { value: { writeText: async (text) => { window.got = text; } } })"""


def answer(page, question: str, value: object) -> None:
    """Clicks an option by what it stands for in the code."""
    option = f"input[data-path='[\"{question}\"]'][data-value='{json.dumps(value)}']"
    page.locator(option).dispatch_event("click")
    page.locator(f".explorer:not(.busy) {option}:checked").wait_for()


def shown(page) -> str:
    """Returns the TF_CONFIG on the page."""
    return page.locator(".listing pre").inner_text()


def config(page) -> dict:
    return json.loads(shown(page))


def picture(page) -> str:
    """Returns what the picture says to those who cannot see it."""
    return page.locator(".panel [role=img]").get_attribute("aria-label")


def spoken(cluster: ClusterSpec, task: str) -> str:
    return "\n".join(cluster_lines(cluster, cluster.task(task)))


def test_choices_change_picture_and_json_without_a_kernel(visit):
    page = visit("served")
    assert config(page)["task"] == {"type": "worker", "index": 1}
    assert page.locator(".explorer .holder").count() == 6
    assert picture(page) == spoken(SERVED, "worker 1")
    pick(page, "This task", "ps 1")
    assert config(page)["task"] == {"type": "ps", "index": 1}
    assert page.locator(".explorer .this text").first.inner_html() == "ps 1"
    assert picture(page) == spoken(SERVED, "ps 1")
    pick(page, "Workers", "2")
    pick(page, "Parameter servers", "0")
    assert config(page) == {
        "cluster": {"chief": HOSTS[:1], "worker": HOSTS[1:3]},
        "task": {"type": "chief", "index": 0},
    }
    assert page.locator(".explorer .holder").count() == 3


@pytest.mark.parametrize(("name", "language"), [("served", "en"), ("ja", "ja")])
def test_every_mistake_shows_what_is_wrong_why_and_what_tensorflow_does(visit, name, language):
    page = visit(name)
    set_language(language)
    for wrong in mistakes.MISTAKES:
        answer(page, "mistake", wrong)
        refusal = page.locator(".refusal[role=alert]").text_content()
        assert page.locator(".told").inner_text() == mistakes.in_tensorflow(SERVED, wrong)
        assert page.locator(".panel").count() == 0
        if wrong == mistakes.PORT_TAKEN:
            assert "worker 2" in refusal
            assert HOSTS[3] in refusal
        else:
            with pytest.raises(CourseError) as raised:
                ClusterSpec.from_tf_config(shown(page))  # what the reader sees is what is wrong
            assert str(raised.value) in refusal


def test_it_is_answered_by_keyboard(visit):
    page = visit("served")
    page.keyboard.press("Tab")  # to the workers
    page.keyboard.press("ArrowLeft")
    page.locator(".explorer .holder").nth(5).wait_for(state="detached")
    assert page.evaluate(FOCUSED) == "2"
    assert len(config(page)["cluster"]["worker"]) == 2
    for _stop in ("servers", "chief", "mistake"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.locator(".refusal").wait_for()
    assert page.evaluate(FOCUSED) == "one address twice"  # though questions have gone
    page.keyboard.press("ArrowLeft")
    page.locator(".panel").wait_for()
    assert page.evaluate(FOCUSED) == "none"
    for _stop in ("evaluator", "this task"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    page.locator(".explorer .this text", has_text="worker 0").wait_for()
    assert config(page)["task"] == {"type": "worker", "index": 0}
    page.evaluate(LISTENS)
    for _stop in ("picture", "TF_CONFIG", "copy"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("window.got") == shown(page)
