"""The batch-size widget: how long a training step takes on one device and on eight, measured when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, join_sentences
from course_lib.measured.batch_sizes import BATCH_SIZES, recorded, this_machine
from course_lib.pictures import arranging, shapes
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure
from course_lib.pictures.shapes import Node
from course_lib.training.records import StepTimes
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State

Measure = Callable[[int], StepTimes]
_STILL_WIDTH = 440.0


class BatchSizeExplorer(Explorer):
    """Lets the reader choose a batch size, and measures a step of that size at each press of the button.

    A press measures one batch size, so that it is over in seconds. On a page without a kernel a choice shows
    what `make results` recorded, and says so.

    Args:
        measure: returns the times of a step for a batch size, such as `course_lib.watch.step_times.measure`.
            Without it the button is disabled.
    """

    name = "batch_sizes"

    def __init__(self, measure: Measure | None = None) -> None:
        self._measure = measure
        self._times: dict[int, StepTimes] = {}  # the newest of each batch size
        self._said: tuple[int, str] | None = None  # the batch size that it is about
        super().__init__({"batch_size": None})

    @property
    def times(self) -> tuple[StepTimes, ...]:
        """What was measured here, the newest of each batch size, small batches first."""
        return tuple(self._times[batch_size] for batch_size in sorted(self._times))

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Time of a training step")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the batch sizes."""
        del state, page
        return [
            Group(_("Reviews in a step"), [Choice(("batch_size",), [(n, f"{n:,}") for n in BATCH_SIZES])])
        ]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state, without a batch size that is not offered."""
        del page
        return state if state["batch_size"] in BATCH_SIZES else {"batch_size": None}

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the times that there are, where they come from, and the button."""
        times, source = _recorded(state) if page else (self.times, _measured_here())
        said = self._said[1] if self._said and self._said[0] == state["batch_size"] else ""
        return [
            *pieces.button(_("Measure"), why_not=_on_a_page() if page else self._why_not(state)),
            pieces.spoken("verdict", "" if page else said),
            *(_picture(times, source) if times else []),
        ]

    def figure(self) -> Figure:
        """Returns a picture that says what the widget is for: figures of this machine are never stored."""
        lines = [self.title(), _("Choose a batch size and measure: one device against eight.")]
        drawing = arranging.lines_of_text(lines, size=14, max_width=_STILL_WIDTH)
        return Figure(shapes.to_svg(arranging.document(drawing, self.title())), "\n".join(lines))

    def measure_choice(self) -> StepTimes:
        """Measures a step of the chosen batch size, shows it in the widget, and returns it.

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
        self._said = times.batch_size, f"✓ {_heading(times)}"
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
            return _("The button needs a function: BatchSizeExplorer(measure).")
        return "" if state["batch_size"] else _("Choose a batch size first.")


def _recorded(state: State) -> tuple[Sequence[StepTimes], str]:
    """Returns the recorded times up to the chosen batch size, and what to say of them."""
    found = recorded()
    if found is None:
        return [], ""
    times = [each for each in found.times if each.batch_size <= (state["batch_size"] or 0)]
    source = _("Not measured on this page, but recorded earlier by {command}:", command=found.command)
    return times, join_sentences([source, found.machine.sentences()])


def _measured_here() -> str:
    return join_sentences([_("Measured here:"), this_machine().sentences()])


def _picture(times: Sequence[StepTimes], source: str) -> list[Node]:
    groups = [_bars(each) for each in times]
    drawing = pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))
    return [pieces.panel(_("Time for each review of a step"), drawing, [source])]


def _bars(times: StepTimes) -> Bars:
    seconds = {
        _("one device"): times.one_device_seconds,
        _("eight devices"): times.eight_devices_seconds,
    }
    size = times.batch_size
    bars = tuple(Bar(label, each / size, _figures(each, size)) for label, each in seconds.items())
    return Bars(_heading(times), bars)


def _heading(times: StepTimes) -> str:
    return _(
        "{rows} reviews: eight devices {speedup} times as fast",
        rows=f"{times.batch_size:,}",
        speedup=f"{times.speedup:.2f}",
    )


def _figures(seconds: float, batch_size: int) -> str:
    return _(
        "{microseconds} µs ({milliseconds} ms a step)",
        microseconds=f"{1e6 * seconds / batch_size:.1f}",
        milliseconds=f"{1e3 * seconds:.1f}",
    )


def _on_a_page() -> str:
    return _("The button needs a running notebook: open this lesson in Jupyter or Colab.")
