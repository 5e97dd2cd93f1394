"""The review widget: what is typed, what a page offers, what was recorded; the picture of a text's way."""

import json

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.measured import export
from course_lib.measured.export import REVIEWS, Exported, ExportMeasured
from course_lib.pictures.figures import figure
from course_lib.specs.text_path import TextPath
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_06_save_and_serve.explorer import ReviewExplorer
from tests.explored import inputs, nodes, text_of

MEASURED = ExportMeasured(
    how={"command": "make results"},
    trained_accuracy=0.86124,
    exports={
        "one_device": Exported(0.86124, 0, 3.4567e-7),
        "shards": Exported(0.8612, 1, 4.5e-7),
    },
    answers={text: 0.123 * (at + 1) for at, text in enumerate(REVIEWS)},
)


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
    export.save(MEASURED, tmp_path)
    monkeypatch.setattr(export, "_FOLDER", tmp_path)
    return tmp_path


def test_a_typed_review_gets_both_probabilities(explorer, asked):
    say(explorer, "A fine film.")
    assert asked == [["A fine film."]]
    assert "13 %" in text_of(explorer.view, " ")
    assert "87 %" in text_of(explorer.view, " ")
    assert "Computed here." in text_of(explorer.view, " ")
    (field,) = [each for each in inputs(explorer.view) if each["type"] == "text"]
    assert field["value"] == "A fine film."


def test_what_is_nearly_certain_is_not_called_certain():
    certain = ReviewExplorer(lambda _texts: [[0.0004, 0.9996]])
    say(certain, "A fine film.")
    assert "under 1 %" in text_of(certain.view, " ")
    assert "over 99 %" in text_of(certain.view, " ")


@pytest.mark.parametrize("nothing", ["", "   ", None, 5])
def test_nothing_typed_asks_nothing(explorer, asked, nothing):
    say(explorer, nothing)
    assert asked == []
    assert "Type a review, or choose one." in text_of(explorer.view, " ")


def test_a_refusal_is_shown(explorer):
    def refuse(_texts):
        raise CourseError("This is no text.", allowed="texts", cure="Type one.")

    refusing = ReviewExplorer(refuse)
    say(refusing, "\ud800")
    assert "This is no text." in text_of(refusing.view, " ")


def test_without_a_model_it_says_what_is_missing():
    alone = ReviewExplorer()
    say(alone, "A fine film.")
    assert "ReviewExplorer(served)" in text_of(alone.view, " ")
    assert all(each[0] != "svg" for each in nodes(alone.view))


def test_a_page_has_the_recorded_answers_and_nothing_to_type(recorded):
    table = page_table(ReviewExplorer())
    assert set(table["keys"]) == {key({"review": review}) for review in ("", *REVIEWS)}
    told = json.dumps([table["views"], table["parts"]], ensure_ascii=False)
    assert "recorded earlier by make results" in told
    assert '"type": "text"' not in told
    assert "open this lesson in Jupyter or Colab" in told
    assert "12 %" in told
    assert "88 %" in told


def test_a_page_without_recorded_answers_shows_none(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_FOLDER", tmp_path)
    told = json.dumps(page_table(ReviewExplorer()))
    assert "%" not in told
    assert "recorded" not in told


# --- What was recorded


def test_what_is_saved_is_read_back_rounded(recorded):
    found = export.load()
    assert found.exports["one_device"] == Exported(0.86124, 0, 3.5e-7)
    assert found.answers[REVIEWS[0]] == 0.12
    assert found.trained_accuracy == 0.86124


def test_the_table_has_a_line_for_the_model_and_each_export(recorded):
    head, trained, one, shards = export.table(export.load()).splitlines()
    assert head.startswith("Accuracy")
    assert trained.split()[0] == "0.861"
    assert one.split()[:3] == ["0.861", "0", "3.5e-07"]
    assert shards.split()[:3] == ["0.861", "1", "4.5e-07"]
    assert trained.index("trained") == one.index("restored") == shards.index("exported")


def test_without_a_measurement_there_is_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_FOLDER", tmp_path)
    assert export.recorded() is None
    with pytest.raises(CourseError, match="06_export"):
        export.load()


def test_the_lesson_is_right_about_the_six_sentences():
    answers = export.load().answers
    assert tuple(answers) == REVIEWS
    assert [text for text, good in answers.items() if good > 0.5] == [REVIEWS[0]]
    assert all(min(good, 1 - good) < 0.1 for good in answers.values())


def test_the_exports_of_the_real_model_answer_as_it_does():
    found = export.load()
    assert round(found.trained_accuracy, 2) == 0.86
    for each in found.exports.values():
        assert abs(each.accuracy - found.trained_accuracy) <= 0.001
        assert each.largest_difference < 1e-3


# --- The way of a text


PATH = TextPath("Good film, zorp!", ("good", "film", "zorp"), (3, 1, 0), (0.6, 0.5, 0.0, 0.62), (48, 2))


def test_the_picture_has_a_stroke_for_each_number_that_is_not_zero():
    svg = figure(PATH).svg
    assert svg.count('stroke-dasharray="4 3"') == 1
    assert svg.count('width="2.5"') == 3
