"""The widget of the three ways to iterate: how long a step takes with each of them, measured when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from course_lib.explorers.measuring import MeasuringExplorer, median_seconds
from course_lib.i18n import _, later
from course_lib.pictures.bars import Bar, Bars

Times = tuple[int, list[float]]  # a batch size, and the seconds of a step on the average with each way


class IterationExplorer(MeasuringExplorer):
    """Lets the reader choose a batch size, and measures the three ways at each press of the button.

    Args:
        measure: returns the times for a batch size, such as what `measuring` returns. Without it the button
            is disabled.
    """

    name = "iterating"
    title = later("Three ways to iterate")
    sizes_label = later("Images in a step")
    invitation = later("Choose a batch size and measure: a step with each of three ways to iterate.")
    panel_title = later("Time of a step on two replicas")
    example = "IterationExplorer(measure)"
    batch_sizes = (64, 512, 2048)

    def bars(self, times: Times) -> Bars:
        """Returns the times of a batch size, with the number of images above them."""
        batch_size, seconds = times
        ways = _("for loop in Python"), _("several steps in a call"), _("all steps in a call")
        bars = (Bar(way, each, f"{1e3 * each:.1f} ms") for way, each in zip(ways, seconds, strict=True))
        return Bars(_("{images} images in a step", images=f"{batch_size:,}"), tuple(bars))


def measuring(ways_of: Callable[[int], Iterable[Callable[[], object]]], steps: int) -> Callable[[int], Times]:
    """Returns a function from a batch size to the median time of a step with each way; they take turns.

    Args:
        ways_of: returns for a batch size three functions that take as many steps: with a loop, with several
            in a call, with all in a call.
        steps: how many they take.
    """

    def measure(batch_size: int) -> Times:
        return batch_size, [each / steps for each in median_seconds(list(ways_of(batch_size)))]

    return measure
