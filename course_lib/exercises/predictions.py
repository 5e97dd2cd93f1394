"""Predictions: a card asks before a cell runs, `reveal` compares afterwards, `score` counts at the end."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass

from course_lib.exercises import questions
from course_lib.exercises.checks import Result, Status
from course_lib.exercises.questions import Question, choices
from course_lib.exercises.values import shown
from course_lib.i18n import _
from course_lib.pictures.shapes import markup, node
from course_lib.widgets.pieces import words


@dataclass(frozen=True)
class Revealed:
    """What was measured, below it how the reader's prediction compares, then why it came out.

    Attributes:
        measured: the value as text.
        verdict: how the prediction compares; None where none was made.
        why: why the right answer is right; "" where the value is not the one that the question is about.
        in_words: whether the text is a sentence of the reader's language, and not a value.
    """

    measured: str
    verdict: Result | None
    why: str = ""
    in_words: bool = False

    def __repr__(self) -> str:
        verdict = "" if self.verdict is None else repr(self.verdict)
        return "\n".join(filter(None, (self.measured, verdict, self.why)))

    def _repr_html_(self) -> str:
        # JupyterLab leaves the first line of a folded output to read: it tells nothing.
        heading = _("What came out")
        shown_value = node("p", *words(self.measured)) if self.in_words else node("pre", self.measured)
        verdict = "" if self.verdict is None else self.verdict._repr_html_()
        why = markup(node("p", *words(self.why))) if self.why else ""
        return f"{heading}\n{markup(shown_value)}{verdict}{why}"


@dataclass(frozen=True)
class Score:
    """How many predictions of a lesson were made before their values were shown, and how many were right."""

    lesson: str
    total: int
    made: int
    right: int

    def __repr__(self) -> str:
        return self._said(self.made, self.right)

    def _repr_html_(self) -> str:
        """Returns an element that counts by itself on a page without a kernel."""
        said = [[self._said(made, right) for right in range(made + 1)] for made in range(self.total + 1)]
        texts = html.escape(json.dumps(said, ensure_ascii=False))
        return f'<course-score data-lesson="{self.lesson}" data-said="{texts}">{self!r}</course-score>'

    def _said(self, made: int, right: int) -> str:
        if not made:
            return _("You made no prediction in this lesson.")
        return _(
            "Predictions made: {made} of {total}. Right: {right}.", made=made, total=self.total, right=right
        )


def predict(prediction_id: str) -> object:
    """Returns the card that asks for a prediction and keeps the reader's answer. Never raises.

    >>> predict("mesh_and_layout-no-such-prediction")
    ✗ There is no prediction 'mesh_and_layout-no-such-prediction'. Restore the id in this cell.
    """
    question = questions.find("predict", prediction_id)
    if question is None:
        return _unknown(prediction_id)
    from course_lib.exercises.cards import Card  # here, since widgets take a while to import

    return Card(question)


def reveal(prediction_id: str, measured: object) -> Revealed:
    """Returns what was measured, how the reader's prediction compares, and why it came out. Never raises.

    The first time decides what the reader predicted: an answer that is chosen later is compared, not counted.

    Args:
        prediction_id: that of the card.
        measured: what running the code gave.
    """
    value = measured if isinstance(measured, str) else shown(measured)
    question = questions.find("predict", prediction_id)
    if question is None:
        return Revealed(value, _unknown(prediction_id))
    named = (option.text for option in question.options if option.label and option.value == measured)
    label = next(named, "") if isinstance(measured, str) else ""
    if not question.right.fits(measured):
        hint = _("This is not the value that the question is about: was a cell changed? No answer applies.")
        return Revealed(label or value, Result(Status.OPEN, hint), in_words=bool(label))
    return Revealed(label or value, _verdict(question), question.right.said, bool(label))


def score(lesson: str) -> Score | Result:
    """Returns how many predictions of a lesson, such as "a_run", the reader made and how many were right."""
    asked = questions.predictions(lesson)
    if not asked:
        hint = _(
            "There is no prediction in a lesson {name}. Restore the topic in this cell.", name=shown(lesson)
        )
        return Result(Status.WRONG, hint)
    made = list(filter(None, (each.option(choices[each.question_id].counted) for each in asked)))
    return Score(lesson, len(asked), len(made), sum(option.right for option in made))


def _verdict(question: Question) -> Result | None:
    """Returns how the reader's answer compares; None where there is none."""
    choice = choices[question.question_id]
    choice.reveal()
    option = question.option(choice.now)
    if option is None:
        return None
    comment = "" if option.right else option.said  # why the right answer is right is said to every reader
    values = {"answer": option.text, "comment": comment}
    told = _("You predicted {answer}. {comment}", **values)
    if choice.is_late(choice.now):
        told = _("You chose {answer} after the value was shown, so it is not counted. {comment}", **values)
    return Result(Status.RIGHT if option.right else Status.WRONG, told.strip())


def _unknown(prediction_id: object) -> Result:
    hint = _("There is no prediction {name}. Restore the id in this cell.", name=shown(prediction_id))
    return Result(Status.WRONG, hint)
