"""Widgets with a button that measures how long something takes for a batch size that the reader chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from course_lib.explorers.observing import ObservingExplorer
from course_lib.i18n import _, join_sentences
from course_lib.measured.machine import sentences, this_machine
from course_lib.pictures.bars import Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, of_words
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.controls import Choice, Group, State


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
    def times(self) -> tuple[Any, ...]:
        """What was measured here, the newest of each batch size, small batches first."""
        return tuple(self._times[batch_size] for batch_size in sorted(self._times))

    @abstractmethod
    def sizes_label(self) -> str:
        """Returns what the batch sizes count."""

    @abstractmethod
    def invitation(self) -> str:
        """Returns what the reader is to do, and what is measured."""

    @abstractmethod
    def panel_title(self) -> str:
        """Returns what the bars show."""

    @abstractmethod
    def bars(self, times: Any) -> Bars:
        """Returns the times of a batch size, with a heading that says what follows."""

    def recorded(self, state: State) -> tuple[Sequence[Any], str]:
        """Returns what a page without a kernel shows, and what to say of it; here nothing."""
        del state
        return [], ""

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the batch sizes."""
        del state, page
        return [
            Group(self.sizes_label(), [Choice(("batch_size",), [(n, f"{n:,}") for n in self.batch_sizes])])
        ]

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
        times, source = self.recorded(state) if page else (self.times, _measured_here())
        return [], self._picture(times, source) if times else []

    def figure(self) -> Figure:
        """Returns a picture that says what the widget is for: figures of this machine are never stored."""
        return of_words(self.title(), [self.title(), self.invitation()])

    def run_for_real(self, state: State) -> Any:
        """Measures the chosen batch size."""
        times = self._observe(state["batch_size"]) if self._observe else None
        self._times[state["batch_size"]] = times
        return times

    def verdict(self, seen: Any) -> str:
        """Returns what the newest times say."""
        return f"✓ {self.bars(seen).heading}"

    def why_not(self, state: State) -> str:
        """Returns why nothing can be measured now, or "" where it can."""
        return super().why_not(state) or ("" if state["batch_size"] else _("Choose a batch size first."))

    def _picture(self, times: Sequence[Any], source: str) -> list[Node]:
        groups = [self.bars(each) for each in times]
        drawing = pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))
        return [pieces.panel(self.panel_title(), drawing, [source])]


def _measured_here() -> str:
    return join_sentences([_("Measured here:"), sentences(this_machine())])
