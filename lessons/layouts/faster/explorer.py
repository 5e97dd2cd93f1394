"""The batch-size widget: how long a training step takes on one device and on eight, measured when asked."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.explorers.measuring import MeasuringExplorer
from course_lib.i18n import _, join_sentences, later
from course_lib.measured.files import Record, load
from course_lib.measured.machine import sentences
from course_lib.pictures.bars import Bar, Bars

BATCH_SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)


class BatchSizeExplorer(MeasuringExplorer):
    """Lets the reader choose a batch size, and measures a step of that size at each press of the button.

    On a page without a kernel a choice shows what `make results` recorded, and says so.

    Args:
        measure: returns the times of a step for a batch size, such as what `step_times.measuring`
            returns. Without it the button is disabled.
    """

    name = "batch_sizes"
    title = later("Time of a training step")
    sizes_label = later("Reviews in a step")
    invitation = later("Choose a batch size and measure: one device against eight.")
    panel_title = later("Time for each review of a step")
    example = "BatchSizeExplorer(measure)"
    batch_sizes = BATCH_SIZES

    def recorded(self, largest: int) -> tuple[Sequence[Record], str]:
        """Returns the recorded times up to the chosen batch size, and what to say of them."""
        measured = load("faster-batch_sizes")
        times = [each for each in measured.step_times if each.batch_size <= largest]
        source = _(
            "Not measured on this page, but recorded earlier by {command}:", command=measured.how.command
        )
        return times, join_sentences([source, sentences(measured.machine)])

    def bars(self, times: Record) -> Bars:
        """Returns the times of a batch size, with the speed-up above them."""
        seconds = {
            _("one device"): times.one_device_seconds,
            _("eight devices"): times.eight_devices_seconds,
        }
        size = times.batch_size
        bars = tuple(Bar(label, each / size, _figures(each, size)) for label, each in seconds.items())
        heading = _(
            "{rows} reviews: eight devices {speedup} times as fast",
            rows=f"{size:,}",
            speedup=f"{times.one_device_seconds / times.eight_devices_seconds:.2f}",
        )
        return Bars(heading, bars)


def _figures(seconds: float, batch_size: int) -> str:
    return _(
        "{microseconds} µs ({milliseconds} ms a step)",
        microseconds=f"{1e6 * seconds / batch_size:.1f}",
        milliseconds=f"{1e3 * seconds:.1f}",
    )
