"""The review widget: what is typed, and what a page offers. How it is typed: tests/book."""

import numpy as np
import pytest

from course_lib.measured import files
from course_lib.pictures import shapes
from tests.course import from_lesson
from tests.explored import choose, nodes, text_of

REVIEWS, ReviewExplorer = from_lesson("save_and_serve.explorer", "REVIEWS", "ReviewExplorer")


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
    answers = {text: round(0.123 * (at + 1), 2) for at, text in enumerate(REVIEWS)}
    files.save("save_and_serve-export", {"how": {"command": "make results"}, "answers": answers})


def test_what_is_nearly_certain_is_not_called_certain():
    certain = ReviewExplorer(lambda _texts: [[0.0004, 0.9996]])
    choose(certain, "review", "A fine film.")
    assert "under 1 %" in text_of(certain.view, " ")
    assert "over 99 %" in text_of(certain.view, " ")


@pytest.mark.parametrize("nothing", ["", "   ", None])
def test_nothing_typed_asks_nothing(explorer, asked, nothing):
    choose(explorer, "review", nothing)
    assert asked == []
    assert "Type a review, or choose one." in text_of(explorer.view, " ")


def test_a_page_offers_recorded_answers_and_says_so(recorded, explorer):
    empty, chosen = (shapes.to_json(explorer.tree({"review": text}, page=True)) for text in ("", REVIEWS[1]))
    assert "open this lesson in Jupyter or Colab" in text_of(empty)
    assert "Probability: bad 75 %, good 25 %" in [each[1].get("aria-label") for each in nodes(chosen)]
    assert "recorded earlier by make results" in text_of(chosen)


def test_a_page_that_is_made_after_a_review_was_typed_begins_without_one(recorded, explorer):
    choose(explorer, "review", "A fine film.")
    assert "Type a review, or choose one." not in explorer.to_html()
    assert "A fine film." not in explorer.to_html()
