"""The review widget: what is typed, what a page offers and records; the way of a text as a picture."""

import json

import numpy as np
import pytest

from course_lib.measured import files
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_06_save_and_serve.explorer import REVIEWS, ReviewExplorer
from tests.explored import inputs, text_of

RECORDED = {
    "how": {"command": "make results"},
    "answers": {text: round(0.123 * (at + 1), 2) for at, text in enumerate(REVIEWS)},
}


def say(explorer, review):
    explorer._answer(explorer, {"kind": "change", "path": ["review"], "value": review}, [])


@pytest.fixture
def asked():
    return []


@pytest.fixture
def explorer(asked):
    def ask(texts):
        asked.append(list(texts))
        return np.array([[0.126, 0.874]], np.float32)

    return ReviewExplorer(ask)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    files.save("06_export", RECORDED)


def test_a_review_that_is_typed_or_chosen_gets_both_probabilities(explorer, asked):
    say(explorer, "A fine film.")
    assert asked == [["A fine film."]]
    assert "13 %" in text_of(explorer.view, " ")
    assert "87 %" in text_of(explorer.view, " ")
    assert "Computed here." in text_of(explorer.view, " ")
    (field,) = [each for each in inputs(explorer.view) if each["type"] == "text"]
    assert field["value"] == "A fine film."
    say(explorer, REVIEWS[1])
    assert asked[1:] == [[REVIEWS[1]]]
    checked = [each for each in inputs(explorer.view) if "checked" in each]
    assert [json.loads(each["data-value"]) for each in checked] == [REVIEWS[1]]


def test_what_is_nearly_certain_is_not_called_certain():
    certain = ReviewExplorer(lambda _texts: [[0.0004, 0.9996]])
    say(certain, "A fine film.")
    assert "under 1 %" in text_of(certain.view, " ")
    assert "over 99 %" in text_of(certain.view, " ")


@pytest.mark.parametrize("nothing", ["", "   ", None])
def test_nothing_typed_asks_nothing(explorer, asked, nothing):
    say(explorer, nothing)
    assert asked == []
    assert "Type a review, or choose one." in text_of(explorer.view, " ")


def test_a_page_has_the_recorded_answers_and_asks_no_model(recorded, explorer, asked):
    explorer.to_html()
    table = page_table(explorer)
    assert asked == []
    assert set(table["keys"]) == {key({"review": review}) for review in ("", *REVIEWS)}
    told = json.dumps([table["views"], table["parts"]], ensure_ascii=False)
    assert "recorded earlier by make results" in told
    assert '"type": "text"' not in told
    assert "open this lesson in Jupyter or Colab" in told
    assert "12 %" in told
    assert "88 %" in told


def test_a_page_that_is_made_after_a_review_was_typed_begins_without_one(recorded, explorer):
    say(explorer, "A fine film.")
    assert "Type a review, or choose one." not in explorer.to_html()
    assert "A fine film." not in explorer.to_html()
