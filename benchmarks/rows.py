"""One line of a benchmark, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """What was measured: the course's seconds, and the other's where there is one to compare with."""

    what: str
    course: float
    other: float | None = None


def table(rows: Sequence[Row]) -> str:
    """Returns the rows as text."""
    lines = [f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}"]
    for what, course, other in rows:
        compared_with = "" if other is None else f"{_milliseconds(other):>11} {other / course:>13.3f}"
        lines.append(f"{what:64} {_milliseconds(course):>11} {compared_with}")
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms"
