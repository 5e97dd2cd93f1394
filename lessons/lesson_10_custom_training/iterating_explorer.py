"""The widget of the three ways to iterate: how long a step takes with each of them, measured when asked."""

from __future__ import annotations

from course_lib.explorers.measuring import MeasuringExplorer
from course_lib.i18n import _
from course_lib.pictures.bars import Bar, Bars
from course_lib.training.records import IterationTimes


class IterationExplorer(MeasuringExplorer):
    """Lets the reader choose a batch size, and measures the three ways at each press of the button.

    Args:
        measure: returns the times for a batch size, such as `measure_iteration` of
            `course_lib.watch.step_times`. Without it the button is disabled.
    """

    name = "iterating"
    example = "IterationExplorer(measure)"
    batch_sizes = (64, 512, 4096)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Three ways to iterate")

    def sizes_label(self) -> str:
        """Returns what the batch sizes count."""
        return _("Images in a step")

    def invitation(self) -> str:
        """Returns what the reader is to do, and what is measured."""
        return _("Choose a batch size and measure: a step with each of three ways to go through an epoch.")

    def panel_title(self) -> str:
        """Returns what the bars show."""
        return _("Time of a step, going through an epoch on two replicas")

    def bars(self, times: IterationTimes) -> Bars:
        """Returns the times of a batch size, with the number of images above them."""
        seconds = {
            _("for loop in Python"): times.for_loop_seconds,
            _("several steps in a call"): times.several_steps_seconds,
            _("whole epoch in a call"): times.whole_epoch_seconds,
        }
        bars = tuple(Bar(label, each, f"{1e3 * each:.1f} ms") for label, each in seconds.items())
        return Bars(_("{images} images in a step", images=f"{times.batch_size:,}"), bars)
