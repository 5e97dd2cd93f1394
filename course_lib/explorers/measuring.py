"""Widgets with a button that measures how long something takes for a batch size that the reader chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from course_lib.errors import CourseError
from course_lib.i18n import _, join_sentences
from course_lib.measured.machine import sentences, this_machine
from course_lib.pictures import arranging, shapes
from course_lib.pictures.bars import Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State

_STILL_WIDTH = 440.0


class MeasuringExplorer(Explorer):
    """Lets the reader choose a batch size, and measures at each press of the button.

    A press measures one batch size, so that it is over in seconds.

    Args:
        measure: returns the times for a batch size. Without it the button is disabled.
    """

    batch_sizes: ClassVar[Sequence[int]]

    def __init__(self, measure: Callable[[int], Any] | None) -> None:
        self._measure = measure
        self._times: dict[int, Any] = {}  # the newest of each batch size
        self._said: tuple[int, str] | None = None  # the batch size that it is about
        super().__init__({"batch_size": None})

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

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the times that there are, where they come from, and the button."""
        times, source = self.recorded(state) if page else (self.times, _measured_here())
        said = self._said[1] if self._said and self._said[0] == state["batch_size"] else ""
        return [
            *pieces.button(_("Measure"), why_not=_on_a_page() if page else self._why_not(state)),
            pieces.spoken("verdict", "" if page else said),
            *(self._picture(times, source) if times else []),
        ]

    def figure(self) -> Figure:
        """Returns a picture that says what the widget is for: figures of this machine are never stored."""
        lines = [self.title(), self.invitation()]
        drawing = arranging.lines_of_text(lines, size=14, max_width=_STILL_WIDTH)
        return Figure(shapes.to_svg(arranging.document(drawing, self.title())), "\n".join(lines))

    def measure_choice(self) -> Any:
        """Measures the chosen batch size, shows the times in the widget, and returns them.

        Raises:
            CourseError: nothing is chosen, there is no `measure`, or it refuses.
        """
        why_not = self._why_not(self.state)
        if self._measure is None or why_not:
            raise CourseError(
                _("This widget cannot measure now."),
                allowed=_("a widget that was given a function measure, and a chosen batch size"),
                cure=why_not,
            )
        times = self._measure(self.state["batch_size"])
        self._times[times.batch_size] = times
        self._said = times.batch_size, f"✓ {self.bars(times).heading}"
        self.show()
        return times

    def pressed(self) -> None:
        """Measures, or shows what went wrong."""
        batch_size = self.state["batch_size"]
        if self._why_not(self.state):
            return
        self._said = batch_size, _("Measuring. This takes a few seconds.")
        self.show()
        try:
            self.measure_choice()
        except CourseError as error:
            self._said = batch_size, f"✗ {error}"
        except Exception as error:
            self._said = batch_size, f"✗ {type(error).__name__}: {error}"
        self.show()

    def _why_not(self, state: State) -> str:
        """Returns why nothing can be measured now, or "" where it can."""
        if self._measure is None:
            return _("The button needs a function: {widget}(measure).", widget=type(self).__name__)
        return "" if state["batch_size"] else _("Choose a batch size first.")

    def _picture(self, times: Sequence[Any], source: str) -> list[Node]:
        groups = [self.bars(each) for each in times]
        drawing = pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))
        return [pieces.panel(self.panel_title(), drawing, [source])]


def _measured_here() -> str:
    return join_sentences([_("Measured here:"), sentences(this_machine())])


def _on_a_page() -> str:
    return _("The button needs a running notebook: open this lesson in Jupyter or Colab.")
