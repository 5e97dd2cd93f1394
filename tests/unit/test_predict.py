"""Predictions: cards, what is kept, verdicts, scores, and the rules for those of every lesson."""

import numpy as np
import pytest

from course_lib.exercises.predictions import predict, reveal, score
from course_lib.exercises.questions import parsed, predictions
from tests.course import COURSE
from tests.explored import pieces, text_of
from tests.predictions import lesson_in

WHY_ROWS = "6 rows over 3 devices are 2 each; the columns stay whole."
WHY_MEAN = "The padding weighs nothing."
WHY_SUMS = "Floats are rounded after each addition."
PREDICTIONS = [known for topic in COURSE.topics for known in predictions(topic)]


@pytest.fixture(autouse=True)
def odd_lesson(tmp_path):
    with lesson_in(tmp_path):
        yield


def choose(card, value) -> None:
    """Does what the module sends when the reader chooses."""
    card._handle_custom_msg({"kind": "change", "path": ["chosen"], "value": value}, [])


def told(card) -> str:
    """Returns what the card says below its answers."""
    return text_of(next(pieces(card.view, "verdict")))


# What the reader predicts, and what comes of it


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        (0, "✗ You predicted `(2, 2)`. That would split the columns over `y` too."),
        (1, "✓ You predicted `(2, 4)`."),
        (2, "✗ You predicted `(3, 4)`. 3 is the number of devices along `x`, not of rows."),
    ],
)
def test_a_choice_is_kept_and_compared_and_why_is_said_once(place, verdict):
    card = predict("predictions-rows")
    choose(card, place)
    assert told(card) == "Kept. Run the next cell."
    assert repr(reveal("predictions-rows", (2, 4))) == f"(2, 4)\n{verdict}\n{WHY_ROWS}"


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (0.428, "✓ You predicted `0.428`."),
        (0.148, "✗ You predicted `0.148`. That divides by the padded rows too."),
        (0.435, "✓ You predicted `0.435`."),  # as right as what may be measured
        (0.44, "✗ You predicted `0.44`. Add them up."),  # off by more than 0.01
        (0.2, "✗ You predicted `0.2`. Add them up."),
        (7, "✗ You predicted `7`. Add them up."),
        (-1e300, "✗ You predicted `-1e+300`. Add them up."),
    ],
)
def test_a_number_is_typed_and_any_gets_a_comment(number, verdict):
    choose(predict("predictions-mean"), number)
    assert repr(reveal("predictions-mean", 0.4323)) == f"0.432\n{verdict}\n{WHY_MEAN}"


def test_a_label_stands_for_a_value_that_is_not_for_reading():
    choose(predict("predictions-sums"), 2)
    assert repr(reveal("predictions-sums", "last")) == (
        "equal but for the last bits of some\n"
        "✓ You predicted equal but for the last bits of some.\n"
        "Floats are rounded after each addition."
    )


def test_with_nothing_answered_there_is_the_measured_value_and_why():
    for name, measured, text in (
        ("predictions-rows", (2, 4), f"(2, 4)\n{WHY_ROWS}"),
        ("predictions-mean", np.float32(0.43), f"0.43\n{WHY_MEAN}"),
        (
            "predictions-sums",
            "last",
            "equal but for the last bits of some\nFloats are rounded after each addition.",
        ),
    ):
        assert told(predict(name)) == ""
        assert repr(reveal(name, measured)) == text
    assert repr(score("predictions")) == "You made no prediction in this lesson."


def test_the_score_counts_what_stood_when_the_value_was_first_shown():
    choose(predict("predictions-rows"), 0)
    choose(predict("predictions-mean"), 0.43)
    assert repr(score("predictions")) == "You made no prediction in this lesson."
    reveal("predictions-rows", (2, 4))
    reveal("predictions-mean", 0.43)
    assert repr(score("predictions")) == "Predictions made: 2 of 3. Right: 1."
    choose(predict("predictions-rows"), 1)
    reveal("predictions-rows", (2, 4))
    assert repr(score("predictions")) == "Predictions made: 2 of 3. Right: 1."


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        (1, "✓ You chose `(2, 4)` after the value was shown, so it is not counted."),
        (
            2,
            "✗ You chose `(3, 4)` after the value was shown, so it is not counted."
            " 3 is the number of devices along `x`, not of rows.",
        ),
    ],
)
def test_a_choice_after_the_value_was_shown_is_compared_and_not_counted(place, verdict):
    reveal("predictions-rows", (2, 4))
    card = predict("predictions-rows")
    choose(card, place)
    assert told(card) == "Kept, but not counted: the value was shown before. Run the next cell again."
    assert repr(reveal("predictions-rows", (2, 4))) == f"(2, 4)\n{verdict}\n{WHY_ROWS}"
    assert repr(score("predictions")) == "You made no prediction in this lesson."


@pytest.mark.parametrize("answered", [True, False])
def test_another_value_than_the_one_asked_for_is_not_compared(answered):
    if answered:
        choose(predict("predictions-rows"), 0)
    assert repr(reveal("predictions-rows", (3, 2))) == (
        "(3, 2)\n… This is not the value that the question is about: was a cell changed? No answer applies."
    )
    assert repr(score("predictions")) == "You made no prediction in this lesson."
    choose(predict("predictions-rows"), 1)  # what was asked for has not been seen
    reveal("predictions-rows", (2, 4))
    assert repr(score("predictions")) == "Predictions made: 1 of 3. Right: 1."


def test_the_name_of_an_option_is_shown_in_the_words_of_that_option():
    revealed = reveal("predictions-sums", "last")
    assert revealed._repr_html_() == (
        "What came out\n<p>equal but for the last bits of some</p>"
        "<p>Floats are rounded after each addition.</p>"
    )
    assert repr(reveal("predictions-sums", "near")).startswith("near\n… This is not the value")
    assert (
        reveal("predictions-sums", "far")
        ._repr_html_()
        .startswith("What came out\n<p>different, not &lt; <code>1e-3</code></p>")
    )


def test_an_unknown_prediction_says_so():
    assert "There is no prediction" in repr(predict("predictions-none"))
    assert repr(reveal("predictions-none", 8)).startswith("8\n✗ There is no prediction")
    assert "There is no prediction in a lesson" in repr(score("97"))


# The card


def test_a_terminal_shows_the_question_and_its_answers_by_their_values():
    assert repr(predict("predictions-rows")) == (
        "The rows of a matrix of 6 by 4 are split over x, a mesh dimension of size 3; the columns are not"
        " split. How many rows and columns does one device hold?\n- (2, 2)\n- (2, 4)\n- (3, 4)"
    )
    assert repr(predict("predictions-mean")) == "What is the mean of the losses?\n- 0.148\n- 0.428"


def test_html_of_what_is_revealed_escapes_and_shows_code():
    choose(predict("predictions-rows"), 0)
    assert reveal("predictions-rows", (2, 4))._repr_html_() == (
        'What came out\n<pre>(2, 4)</pre><div role="status"><strong>✗</strong> '
        "You predicted <code>(2, 2)</code>. That would split the columns over <code>y</code> too.</div>"
        f"<p>{WHY_ROWS}</p>"
    )
    assert reveal("predictions-sums", "<b>")._repr_html_().startswith("What came out\n<pre>&lt;b&gt;</pre>")


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
