"""The review widget: the reader types a review, and the served model gives both probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.i18n import _, join_sentences, later
from course_lib.measured.files import load
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Field, Group, State

Ask = Callable[[Sequence[str]], Any]
_REVIEW = ("review",)
_ALL = 100
# `make results` asks the exported model, for the page: what the reader types there nobody can answer.
REVIEWS = (
    "A wonderful film, moving and funny to the end.",
    "Boring, badly acted and far too long.",
    "The acting is great, but the story is a mess.",
    "Not bad at all: I loved every minute of it.",
    "Not good at all: I hated every minute of it.",
    "I expected the worst film of the year. It was the best.",
)


class ReviewExplorer(Explorer):
    """Lets the reader type a review, and shows with which probability it is a bad or a good one.

    On a page without a kernel nothing can be computed: there a few reviews can be chosen, with the answers
    that `make results` recorded, and the widget says so.

    Args:
        ask: gives for a list of texts how probable each is a good review; a page needs none.
    """

    name = "reviews"
    title = later("A good review or a bad one?")

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        super().__init__({"review": ""})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns a field to type in, and a few reviews to choose."""
        field = Field(_REVIEW, _("A review in English; then press Enter"), "text")
        return [Group(_("Your review"), [field]), *self.page_controls(state)]

    def page_controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the reviews that have a recorded answer."""
        return [Group(_("A review to choose"), [Choice(_REVIEW, [(text, text) for text in REVIEWS])])]

    def settled(self, state: State) -> State:
        """Returns the state, with a text as the review."""
        return {"review": state["review"] or ""}

    def page_settled(self, state: State) -> State:
        """Returns the state without a review that has no recorded answer."""
        return {"review": state["review"] if state["review"] in REVIEWS else ""}

    def body(self, state: State) -> Sequence[Node]:
        """Returns both probabilities, or what is missing."""
        review = state["review"]
        if not review.strip() or self._ask is None:
            return [pieces.spoken("verdict", "" if review.strip() else _("Type a review, or choose one."))]
        good = float(self._ask([review])[0])
        return [pieces.spoken("verdict", ""), _predicted(good, _("Computed here."))]

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns what was recorded of a review, and what a page cannot do."""
        missing = _("To type a review of your own, open this lesson in Jupyter or Colab.")
        told = [pieces.spoken("verdict", missing)]
        if not state["review"]:
            return told
        measured = load("save_and_serve-export")
        source = _(
            "Not computed on this page, but recorded earlier by {command}:", command=measured.how.command
        )
        model = _("the predictions of a model that was trained on the real reviews.")
        return [*told, _predicted(measured.answers[state["review"]], join_sentences([source, model]))]


def _predicted(good: float, source: str) -> Node:
    bars = (Bar(_("bad"), 1 - good, _percent(1 - good)), Bar(_("good"), good, _percent(good)))
    drawing = pieces.bars([Bars(_("Probability"), bars)], full=1.0)
    return pieces.panel(_("What the model predicts"), drawing, [source])


def _percent(probability: float) -> str:
    """Returns whole percents; of what is nearly certain or nearly impossible no more than that."""
    percent = round(100 * probability)
    if 0 < percent < _ALL:
        return _("{percent} %", percent=percent)
    return _("over 99 %") if percent else _("under 1 %")
