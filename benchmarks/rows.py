"""One line of a benchmark, and the table of all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """What was measured: the course's seconds, and the other's where there is one to compare with.

    `ratio` is the median of other / course, pair by pair.
    """

    what: str
    course: float
    other: float | None = None
    ratio: float | None = None


def compared(what: str, pairs: Sequence[tuple[float, float]]) -> Row:
    """Returns the line of pairs of (course's seconds, other's seconds), each pair measured in turns."""
    courses, others = zip(*pairs, strict=True)
    ratio = statistics.median(other / course for course, other in pairs)
    return Row(what, statistics.median(courses), statistics.median(others), ratio)


def table(rows: Sequence[Row]) -> str:
    """Returns the rows as text."""
    lines = [f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}"]
    for row in rows:
        other = "" if row.other is None else _milliseconds(row.other)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        lines.append(f"{row.what:64} {_milliseconds(row.course):>11} {other:>11} {ratio:>13}")
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms"
