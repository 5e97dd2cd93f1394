"""The card of a prediction: the question, its answers, and what follows from the reader's choice."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.exercises.questions import Question, choices
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Choice, Field, Group, State
from course_lib.widgets.pieces import words

_CHOSEN = ("chosen",)  # the place of an option, or the number in the field


class Card(TreeWidget):
    """Asks for a prediction: a notebook keeps the answer for `reveal`, a page comments on it at once.

    An answer that was kept before stays chosen.
    """

    kind = "prediction"
    title = later("Predict")

    def __init__(self, question: Question) -> None:
        self._question, self._choice = question, choices[question.question_id]
        self.name = question.question_id
        super().__init__({"chosen": self._choice.now})
        self.observe(self._keep, "state")

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the question over its answers, or over a field where a number is asked for."""
        if self._question.is_typed:
            return [Group(self._question.text, [Field(_CHOSEN, _("Your number"), step="any")])]
        return self.page_controls(state)

    def page_controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the question over its answers."""
        answers = [(place, option.text) for place, option in enumerate(self._question.offered)]
        return [Group(self._question.text, [Choice(_CHOSEN, answers)])]

    def body(self, state: State) -> Sequence[Node]:
        """Returns what to do next."""
        told = "" if state["chosen"] is None else _("Kept. Run the next cell.")
        if told and self._choice.is_late(state["chosen"]):
            told = _("Kept, but not counted: the value was shown before. Run the next cell again.")
        return [pieces.spoken("verdict", told)]

    def page_first(self) -> State:
        """Returns the state without an answer."""
        return {"chosen": None}

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the verdict on the answer."""
        to_confirm = pieces.spoken("confirm", "", data_text=_("Press Enter to choose this answer."))
        if state["chosen"] is None:
            return [to_confirm, pieces.spoken("verdict", "")]
        option = self._question.offered[state["chosen"]]
        if option.right:  # why, says the measurement below, which the choice opens
            mark, said = node("strong", "✓", aria_hidden="true"), _("Right.")
        else:
            mark, said = node("strong", "✗", role="img", aria_label=_("Wrong")), option.said
        verdict = node(
            "p",
            mark,
            " ",
            *words(said),
            class_="verdict",
            role="status",
            data_predicted=self._question.question_id,
            data_right="true" if option.right else "false",
        )
        return [to_confirm, verdict]

    def still(self) -> Node:
        """Returns the question and its answers."""
        answers = [node("li", *words(option.text)) for option in self._question.offered]
        return node("div", node("p", *words(self._question.text)), node("ul", *answers))

    def _keep(self, *_change: object) -> None:
        self._choice.now = self.state["chosen"]
