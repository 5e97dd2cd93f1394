"""Explorers that measure a step for a batch size, when asked, and keep what they measured."""

from __future__ import annotations

import statistics
import timeit
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from course_lib.explorers.experiment import Experiment
from course_lib.i18n import _, join_sentences, later
from course_lib.measured.machine import sentences, this_machine
from course_lib.pictures.bars import Bars
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.controls import Group, State, numbers


def median_seconds(ways: Sequence[Callable[[], object]], turns: int = 3) -> list[float]:
    """Returns how long each of several functions takes; they take turns, after one in which they compile."""
    seconds = [[timeit.timeit(way, number=1) for way in ways] for _turn in range(1 + turns)][1:]
    return [statistics.median(each) for each in zip(*seconds, strict=True)]


class MeasuringExplorer(Experiment):
    """Lets the reader choose a batch size, and measures at each press of the button.

    A press measures one batch size, so that it is over in seconds.

    Args:
        measure: returns the times for a batch size. Without it the button is disabled.

    Attributes:
        batch_sizes: what can be chosen.
        sizes_label: what the batch sizes count.
        invitation: what the reader is to do, and what is measured.
        panel_title: what the bars show.
    """

    batch_sizes: ClassVar[Sequence[int]]
    sizes_label: Any
    invitation: Any
    panel_title: Any
    button = later("Measure")
    waiting = later("Measuring. This takes a few seconds.")
    repeats = True

    def __init__(self, measure: Callable[[int], Any] | None = None) -> None:
        self._times: dict[int, Any] = {}  # the newest of each batch size
        super().__init__(measure, {"batch_size": None})

    @property
    def times(self) -> tuple[Any, ...]:
        """What was measured here, the newest of each batch size, small batches first."""
        return tuple(self._times[batch_size] for batch_size in sorted(self._times))

    @abstractmethod
    def bars(self, times: Any) -> Bars:
        """Returns the times of a batch size, with a heading that says what follows."""

    def recorded(self, largest: int) -> tuple[Sequence[Any], str]:  # noqa: ARG002 - some have nothing
        """Returns what a page without a kernel shows up to a batch size, and what to say of it."""
        return [], ""

    def controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the batch sizes."""
        return [Group(self.sizes_label, [numbers(("batch_size",), self.batch_sizes)])]

    def settled(self, state: State) -> State:
        """Returns the state, without a batch size that is not offered."""
        return state if state["batch_size"] in self.batch_sizes else {"batch_size": None}

    def above(self, state: State, result: Any) -> Sequence[Node]:  # noqa: ARG002 - times stand below
        """Returns what the reader is to do."""
        return [node("p", self.invitation)]

    def body(self, state: State) -> Sequence[Node]:
        """Returns the button, and the times that were measured here."""
        source = join_sentences([_("Measured here:"), sentences(this_machine())])
        return [*super().body(state), *self._picture(self.times, source)]

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the button that no kernel answers, and the times that were recorded."""
        return [*super().page_body(state), *self._picture(*self.recorded(state["batch_size"] or 0))]

    def result(self, state: State) -> Any:
        """Returns the times of the chosen batch size."""
        times = self._observe(state["batch_size"]) if self._observe else None
        self._times[state["batch_size"]] = times
        return times

    def verdict(self, result: Any) -> str:
        """Returns what the newest times say."""
        return f"✓ {self.bars(result).heading}"

    def why_not(self, state: State) -> str:
        """Returns why nothing can be measured now, or "" where it can."""
        return super().why_not(state) or ("" if state["batch_size"] else _("Choose a batch size first."))

    def _picture(self, times: Sequence[Any], source: str) -> list[Node]:
        if not times:
            return []
        return [pieces.panel(self.panel_title, pieces.bars([self.bars(each) for each in times]), [source])]
