"""Widgets with a button that measures how long something takes for a batch size that the reader chooses."""

from __future__ import annotations

import statistics
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from course_lib.explorers.observing import ObservingExplorer
from course_lib.i18n import _, join_sentences
from course_lib.measured.machine import sentences, this_machine
from course_lib.pictures.bars import Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, of_words
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.controls import Choice, Group, State


def median_seconds(ways: Sequence[Callable[[], object]], turns: int = 3) -> list[float]:
    """Returns how long each of several functions takes; they take turns, after one in which they compile."""
    seconds = [[_seconds(way) for way in ways] for _turn in range(1 + turns)][1:]
    return [statistics.median(each) for each in zip(*seconds, strict=True)]


def _seconds(way: Callable[[], object]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


class Words(NamedTuple):
    """What a widget says, in the reader's language: its name, what is counted, what to do, of its bars."""

    title: str
    sizes: str
    invitation: str
    panel: str


class MeasuringExplorer(ObservingExplorer):
    """Lets the reader choose a batch size, and measures at each press of the button.

    A press measures one batch size, so that it is over in seconds.

    Args:
        measure: returns the times for a batch size. Without it the button is disabled.
    """

    batch_sizes: ClassVar[Sequence[int]]
    repeats = True

    def __init__(self, measure: Callable[[int], Any] | None = None) -> None:
        self._times: dict[int, Any] = {}  # the newest of each batch size
        super().__init__(measure, {"batch_size": None})

    @property
    def times(self) -> list[Any]:
        """What was measured here, the newest of each batch size, small batches first."""
        return [self._times[batch_size] for batch_size in sorted(self._times)]

    @abstractmethod
    def words(self) -> Words:
        """Returns what the widget says."""

    @abstractmethod
    def bars(self, times: Any) -> Bars:
        """Returns the times of a batch size, with a heading that says what follows."""

    def recorded(self, largest: int) -> tuple[Sequence[Any], str]:  # noqa: ARG002 - of others something is
        """Returns what a page shows up to a batch size, and what to say of it; here nothing."""
        return [], ""

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return self.words().title

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the batch sizes."""
        del state, page
        sizes = [(size, f"{size:,}") for size in self.batch_sizes]
        return [Group(self.words().sizes, [Choice(("batch_size",), sizes)])]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state, without a batch size that is not offered."""
        del page
        return state if state["batch_size"] in self.batch_sizes else {"batch_size": None}

    def button_text(self) -> str:
        """Returns what stands on the button."""
        return _("Measure")

    def waiting(self) -> str:
        """Returns what is said while it measures."""
        return _("Measuring. This takes a few seconds.")

    def shown(self, state: State, seen: Any, *, page: bool) -> tuple[Sequence[Node], Sequence[Node]]:
        """Returns the times that there are, and where they come from, below the button."""
        del seen
        here = join_sentences([_("Measured here:"), sentences(this_machine())])
        times, source = self.recorded(state["batch_size"] or 0) if page else (self.times, here)
        if not times:
            return [], []
        groups = [self.bars(each) for each in times]
        drawing = pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))
        return [], [pieces.panel(self.words().panel, drawing, [source])]

    def figure(self) -> Figure:
        """Returns a picture that says what the widget is for: figures of this machine are never stored."""
        return of_words(self.title(), [self.title(), self.words().invitation])

    def run_for_real(self, state: State) -> Any:
        """Measures the chosen batch size."""
        size = state["batch_size"]
        self._times[size] = self._observe(size) if self._observe else None
        return self._times[size]

    def verdict(self, seen: Any) -> str:
        """Returns what the newest times say."""
        return f"✓ {self.bars(seen).heading}"

    def why_not(self, state: State) -> str:
        """Returns why nothing can be measured now, or "" where it can."""
        return super().why_not(state) or ("" if state["batch_size"] else _("Choose a batch size first."))
