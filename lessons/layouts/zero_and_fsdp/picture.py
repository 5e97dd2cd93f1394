"""The picture of this lesson: what a device holds, as bars."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.i18n import _
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, framed


def memory_picture(schemes: Mapping[str, Mapping[str, float]]) -> Figure:
    """Returns what a device holds as bars, in gigabytes: under each scheme one for each kind of tensor.

    Args:
        schemes: by its name the bytes of each kind.
    """
    groups = []
    for scheme, held in schemes.items():
        bars = tuple(Bar(kind, size, f"{size / 1e9:.1f} GB") for kind, size in held.items())
        groups.append(Bars(f"{scheme}: {sum(held.values()) / 1e9:.1f} GB", bars))
    return framed(_("What a device holds"), [bars_drawing(groups)], bar_lines(groups))
