"""The review widget on a bare page and in a notebook: typing, choosing, and what a page cannot do."""

from __future__ import annotations

import pytest

from course_lib.measured import files
from lessons.lesson_06_save_and_serve.explorer import REVIEWS, ReviewExplorer
from tests.book.bare_page import NOTEBOOK_HOST, answered, write_pages
from tests.unit.test_reviews import RECORDED
from tools.book.explorers import write_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "FOLDER", folder)
        files.save("06_export", RECORDED)
        write_tables(["en"], folder, [ReviewExplorer])
        write_pages(folder, {"reviews": ReviewExplorer().to_html(), "none": ""})
    return folder


def ask(texts):
    """Stands in for a model: long reviews are good ones."""
    good = min(len(texts[0]) / 100, 1.0)
    return [[1 - good, good]]


def settle(page) -> None:
    page.locator(".explorer:not(.busy)").first.wait_for()


def in_a_notebook(page) -> ReviewExplorer:
    explorer = ReviewExplorer(ask)
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    return explorer


def test_a_page_offers_recorded_answers_and_says_so(visit):
    page = visit("reviews")
    assert page.get_by_role("textbox").count() == 0
    assert "open this lesson in Jupyter or Colab" in page.locator(".verdict").inner_text()
    page.locator("label", has_text=REVIEWS[1]).click()
    settle(page)
    assert page.get_by_role("img").get_attribute("aria-label") == "Probability: bad 75 %, good 25 %"
    assert "recorded earlier by make results" in page.locator(".notes").inner_text()


def test_a_typed_review_is_answered_at_enter_and_the_field_keeps_the_focus(visit):
    page = visit("none")
    explorer = in_a_notebook(page)
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
    page.keyboard.press("Enter")
    answered(page, explorer)
    assert explorer.state == {"review": "What a film! Yes."}


def test_an_answer_that_comes_late_does_not_take_what_is_being_typed(visit):
    page = visit("none")
    explorer = in_a_notebook(page)
    page.get_by_role("textbox").click()
    page.keyboard.type("Dull")
    page.evaluate("view => answer(view)", explorer.view)
    assert page.get_by_role("textbox").input_value() == "Dull"
