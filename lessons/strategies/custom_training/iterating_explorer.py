"""The widget of the three ways to iterate: how long a step takes with each of them, measured when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from course_lib.explorers.measuring import MeasuringExplorer, median_seconds
from course_lib.i18n import _, later
from course_lib.pictures.bars import Bar, Bars


@dataclass(frozen=True)
class IterationTimes:
    """How many seconds a step takes on the average of an epoch, with each of the three ways.

    Attributes:
        batch_size: the number of examples in the global batch.
        for_loop: with a call of TensorFlow for each step.
        several_steps: with a call for several steps, which takes their batches from an iterator.
        whole_epoch: with one call for all steps.
    """

    batch_size: int
    for_loop: float
    several_steps: float
    whole_epoch: float


class IterationExplorer(MeasuringExplorer):
    """Lets the reader choose a batch size, and measures the three ways at each press of the button.

    Args:
        measure: returns the times for a batch size, such as what `measuring` returns. Without it the button
            is disabled.
    """

    name = "iterating"
    title = later("Three ways to iterate")
    sizes_label = later("Images in a step")
    invitation = later(
        "Choose a batch size and measure: a step with each of three ways to go through an epoch."
    )
    panel_title = later("Time of a step, going through an epoch on two replicas")
    example = "IterationExplorer(measure)"
    batch_sizes = (64, 512, 2048)

    def bars(self, times: IterationTimes) -> Bars:
        """Returns the times of a batch size, with the number of images above them."""
        seconds = {
            _("for loop in Python"): times.for_loop,
            _("several steps in a call"): times.several_steps,
            _("whole epoch in a call"): times.whole_epoch,
        }
        bars = tuple(Bar(label, each, f"{1e3 * each:.1f} ms") for label, each in seconds.items())
        return Bars(_("{images} images in a step", images=f"{times.batch_size:,}"), bars)


def measuring(
    ways_of: Callable[[int], Iterable[Callable[[], object]]], steps: int
) -> Callable[[int], IterationTimes]:
    """Returns a function from a batch size to the median time of a step with each way; they take turns.

    Args:
        ways_of: returns for a batch size three functions that train for an epoch: with a loop, with several
            steps in a call, with all in a call.
        steps: how many steps the epoch has.
    """

    def measure(batch_size: int) -> IterationTimes:
        seconds = median_seconds(list(ways_of(batch_size)))
        return IterationTimes(batch_size, *(each / steps for each in seconds))

    return measure
