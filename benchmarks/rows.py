"""One line of a benchmark, and the table of all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured: the course's time, and the other's where there is one to compare with.

    Attributes:
        what: what is compared, or what was timed.
        course_seconds: the median time of the course's way.
        other_seconds: the median time of the other way.
        ratio: the median of other / course, pair by pair.
        goal: what the course wants of it, in words.
    """

    what: str
    course_seconds: float
    other_seconds: float | None = None
    ratio: float | None = None
    goal: str = ""


def compared(what: str, pairs: Sequence[tuple[float, float]], goal: str = "") -> Row:
    """Returns the line of pairs of (course's seconds, other's seconds), each pair measured in turns."""
    return Row(
        what,
        statistics.median(course for course, _other in pairs),
        statistics.median(other for _course, other in pairs),
        statistics.median(other / course for course, other in pairs),
        goal,
    )


def table(rows: Sequence[Row]) -> str:
    """Returns the rows as text."""
    lines = [f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}  goal"]
    for row in rows:
        other = "" if row.other_seconds is None else _milliseconds(row.other_seconds)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        lines.append(
            f"{row.what:64} {_milliseconds(row.course_seconds):>11} {other:>11} {ratio:>13}  {row.goal}"
        )
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms"
