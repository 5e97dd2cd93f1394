"""The review widget: the reader types a review, and the served model gives both probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.i18n import _, join_sentences
from course_lib.measured.files import load
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, of_words
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, Text

Ask = Callable[[Sequence[str]], Any]
_REVIEW = ("review",)
_ALL = 100
_MEASURED = "save_and_serve-export"
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
        ask: gives for a list of texts the probabilities, `[texts, 2] global`, bad first; a page needs none.
    """

    name = "reviews"

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        super().__init__({"review": ""})

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("A good review or a bad one?")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns a field to type in, and a few reviews to choose."""
        del state
        offered = Group(_("A review to choose"), [Choice(_REVIEW, [(text, text) for text in REVIEWS])])
        field = Text(_REVIEW, _("A review in English; then press Enter"))
        return [offered] if page else [Group(_("Your review"), [field]), offered]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state; on a page without a review that has no recorded answer."""
        review = state["review"]
        known = review in REVIEWS if page else isinstance(review, str)
        return {"review": review if known else ""}

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns both probabilities, where they come from, or what is missing."""
        review = state["review"]
        told = [pieces.spoken("verdict", _missing(review, page=page))]
        if not review.strip():
            return told
        if page:
            good = load(_MEASURED).answers[review]
        elif self._ask is not None:
            good = float(self._ask([review])[0][1])
        else:
            return told
        bars = (Bar(_("bad"), 1 - good, _percent(1 - good)), Bar(_("good"), good, _percent(good)))
        groups = [Bars(_("Probability"), bars)]
        drawing = pieces.image(bars_drawing(groups, full=1.0), "\n".join(bar_lines(groups)))
        source = _recorded() if page else _("Computed here.")
        return [*told, pieces.panel(_("What the model predicts"), drawing, [source])]

    def figure(self) -> Figure:
        """Returns a picture that says what the widget is for: answers of this machine are never stored."""
        return of_words(self.title(), [self.title(), _("Type a review and see both probabilities.")])


def _missing(review: str, *, page: bool) -> str:
    if page:
        return _("To type a review of your own, open this lesson in Jupyter or Colab.")
    return "" if review.strip() else _("Type a review, or choose one.")


def _recorded() -> str:
    command = load(_MEASURED).how.command
    recorded = _("Not computed on this page, but recorded earlier by {command}:", command=command)
    return join_sentences([recorded, _("the predictions of a model that was trained on the real reviews.")])


def _percent(probability: float) -> str:
    """Returns whole percents; of what is nearly certain or nearly impossible no more than that."""
    percent = round(100 * probability)
    if 0 < percent < _ALL:
        return _("{percent} %", percent=percent)
    return _("over 99 %") if percent else _("under 1 %")
