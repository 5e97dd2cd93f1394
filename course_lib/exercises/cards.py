"""The card of a prediction: the question, its answers, and what follows from the reader's choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.exercises import kept
from course_lib.exercises.predictions import Prediction
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Choice, Group, Number, State
from course_lib.widgets.words import words

_CHOSEN = ("chosen",)  # the place of an option, or the number in the field
_OPEN: State = {"chosen": None}


class Card(TreeWidget):
    """Asks for a prediction: a notebook keeps the answer for `reveal`, a page comments on it at once.

    Args:
        prediction: what is asked. An answer that was kept before stays chosen.
    """

    kind = "prediction"
    title = later("Predict")

    def __init__(self, prediction: Prediction) -> None:
        self._prediction, self._options = prediction, prediction.options()
        self.name = prediction.prediction_id
        super().__init__({"chosen": kept.of(prediction.prediction_id).chosen})
        self.observe(self._keep, "state")

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the question over its answers, or over a field where a number is asked for."""
        if self._prediction.is_typed:
            return [Group(self._prediction.question, [Number(_CHOSEN, _("Your number"), whole=False)])]
        return self.page_controls(state)

    def page_controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the question over its answers."""
        answers = [(place, option.text) for place, option in enumerate(self._options)]
        return [Group(self._prediction.question, [Choice(_CHOSEN, answers)])]

    def body(self, state: State) -> Sequence[Node]:
        """Returns what to do next."""
        return [pieces.spoken("verdict", "" if state["chosen"] is None else self._what_next(state["chosen"]))]

    def page_first(self) -> State:
        """Returns the state without an answer."""
        return _OPEN

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the verdict on the answer."""
        return self._verdict(state["chosen"])

    def still(self) -> Node:
        """Returns the question and its answers."""
        answers = [node("li", *words(option.text)) for option in self._options]
        return node("div", node("p", *words(self._prediction.question)), node("ul", *answers))

    def _keep(self, *_change: object) -> None:
        kept.of(self._prediction.prediction_id).chosen = self.state["chosen"]

    def _what_next(self, chosen: Any) -> str:
        if kept.of(self._prediction.prediction_id).is_late(chosen):
            return _("Kept, but not counted: the value was shown before. Run the next cell again.")
        return _("Kept. Run the next cell.")

    def _verdict(self, place: int | None) -> list[Node]:
        to_confirm = pieces.spoken("confirm", "", data_text=_("Press Enter to choose this answer."))
        if place is None:
            return [to_confirm, pieces.spoken("verdict", "")]
        option = self._options[place]
        right = self._prediction.is_right(option)
        if right:  # why, says the measurement below, which the choice opens
            mark, said = node("strong", "✓", aria_hidden="true"), _("Right.")
        else:
            mark, said = node("strong", "✗", role="img", aria_label=_("Wrong")), option.comment
        verdict = node(
            "p",
            mark,
            " ",
            *words(said),
            class_="verdict",
            role="status",
            data_predicted=self._prediction.prediction_id,
            data_right="true" if right else "false",
        )
        return [to_confirm, verdict]
