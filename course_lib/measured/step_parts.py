"""What a training step spends its time on: a picture of the `step_parts` that were measured."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.i18n import _
from course_lib.measured.files import Record
from course_lib.measured.titles import title
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, framed


def figure(schemes: Mapping[str, Record]) -> Figure:
    """Returns a picture of the parts beside the whole step, in the reader's language."""
    groups = [Bars(title(f"{scheme} mesh"), _bars(parts)) for scheme, parts in schemes.items()]
    return framed(_("What a training step takes"), [bars_drawing(groups)], bar_lines(groups))


def _bars(parts: Record) -> tuple[Bar, ...]:
    seconds = {
        _("packing on the host"): parts.packing,
        _("dispatch"): parts.tiny,
        _("arithmetic"): parts.share - parts.tiny,
        _("collectives"): parts.exchanges,
        _("step of the loop"): parts.loop,
    }
    return tuple(Bar(label, max(value, 0.0), f"{1e3 * value:.2f} ms") for label, value in seconds.items())
