"""Predictions: cards, what is kept, verdicts, scores, and the rules for those of every lesson."""

import numpy as np
import pytest

from course_lib.exercises.predictions import predict, reveal, score
from course_lib.exercises.questions import parsed, predictions
from tests.course import COURSE
from tests.explored import pieces, text_of
from tests.small_course import among_lessons

PREDICTIONS = [known for topic in COURSE.topics for known in predictions(topic)]


@pytest.fixture(autouse=True)
def small_lesson():
    with among_lessons():
        yield


def choose(card, value) -> None:
    """Does what the module sends when the reader chooses."""
    card._handle_custom_msg({"kind": "change", "path": ["chosen"], "value": value}, [])


def told(card) -> str:
    """Returns what the card says below its answers."""
    return text_of(next(pieces(card.view, "verdict")))


# What the reader predicts, and what comes of it


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (3, "✓ You predicted `3`."),
        (4, "✗ You predicted `4`. That is more than half."),
        (3.3, "✓ You predicted `3.3`."),  # as right as what may be measured
        (3.5, "✗ You predicted `3.5`. Count the rows."),  # off by more than 0.4
        (-1e300, "✗ You predicted `-1e+300`. Count the rows."),
    ],
)
def test_a_number_is_typed_and_any_gets_a_comment(number, verdict):
    choose(predict("fixture-seven"), number)
    assert repr(reveal("fixture-seven", np.float32(2.8123))) == f"2.81\n{verdict}\nOne row is left."


def test_the_score_counts_what_stood_when_the_value_was_first_shown():
    choose(predict("fixture-eight"), 0)
    choose(predict("fixture-seven"), 3)
    assert repr(score("fixture")) == "You made no prediction in this lesson."
    reveal("fixture-eight", 4)
    reveal("fixture-seven", 3)
    assert repr(score("fixture")) == "Predictions made: 2 of 4. Right: 1."
    choose(predict("fixture-eight"), 1)
    reveal("fixture-eight", 4)
    assert repr(score("fixture")) == "Predictions made: 2 of 4. Right: 1."


def test_a_choice_after_the_value_was_shown_is_compared_and_not_counted():
    reveal("fixture-eight", 4)
    card = predict("fixture-eight")
    choose(card, 2)
    assert told(card) == "Kept, but not counted: the value was shown before. Run the next cell again."
    verdict = "✗ You chose `8` after the value was shown, so it is not counted. All."
    assert repr(reveal("fixture-eight", 4)) == f"4\n{verdict}\nHalf."
    assert repr(score("fixture")) == "You made no prediction in this lesson."


@pytest.mark.parametrize("answered", [True, False])
def test_another_value_than_the_one_asked_for_is_not_compared(answered):
    if answered:
        choose(predict("fixture-eight"), 0)
    assert repr(reveal("fixture-eight", 16)) == (
        "16\n… This is not the value that the question is about: was a cell changed? No answer applies."
    )
    assert repr(score("fixture")) == "You made no prediction in this lesson."
    choose(predict("fixture-eight"), 1)  # what was asked for has not been seen
    reveal("fixture-eight", 4)
    assert repr(score("fixture")) == "Predictions made: 1 of 4. Right: 1."


def test_an_unknown_prediction_says_so():
    assert "There is no prediction" in repr(predict("fixture-gone"))
    assert repr(reveal("fixture-gone", 8)).startswith("8\n✗ There is no prediction")
    assert "There is no prediction in a lesson" in repr(score("97"))


# The card


def test_html_of_what_is_revealed_escapes_and_shows_code():
    choose(predict("fixture-eight"), 0)
    assert reveal("fixture-eight", 4)._repr_html_() == (
        'What came out\n<pre>4</pre><div role="status"><strong>✗</strong> '
        "You predicted <code>2</code>. A quarter.</div><p>Half.</p>"
    )
    assert reveal("fixture-none", "<b>")._repr_html_().startswith("What came out\n<pre>&lt;b&gt;</pre>")


# The rules for the predictions of the lessons


@pytest.mark.parametrize("question", PREDICTIONS, ids=lambda question: question.question_id)
def test_the_predictions_of_the_lessons_keep_the_rules(question):
    options = question.options
    assert [option for option in options if option.fits(question.right.value)] == [question.right]
    assert len(options) > 2, "fewer than two wrong answers"
    assert len({option.text for option in options}) == len(options), "two options look the same"
    comments = [option.comment for option in options] + [question.otherwise] * question.is_typed
    assert all(comments), "a comment is missing"
    assert len({*comments}) == len(comments), "two comments are the same"
    assert not any("$" in text for text in question.texts()), "a formula is not typeset on a card"
    names = [option for option in options if isinstance(option.value, str)]
    assert all(option.label for option in names), "a name has no words"
    assert not (names and question.is_typed), "an option of a field is no number"


@pytest.mark.parametrize("text", ["?\n\n- [ ] `1`\n  one", "?\n\n- [x] 1\n  one", "?", "?\n\n- `1`"])
def test_a_card_that_cannot_be_read_says_so(text):
    with pytest.raises(ValueError, match="as"):
        parsed(text)
