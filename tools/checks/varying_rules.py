"""Numbers that vary, `≈ 0.36`: the source states the band of each, and what is stored lies in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from course_lib.varying import NUMBER, OUTSIDE, SIGN
from tools.checks.parts import calls, parsed
from tools.lesson.cells import Cell
from tools.lesson.sources import Lesson

Band = tuple[float, float]


def bands(lesson: Lesson) -> Iterator[str]:
    """Yields the calls of `about` whose band is not two literal numbers, low < high."""
    for cell in lesson.cells:
        for call in calls(parsed(cell), "about") if cell.kind == "code" else ():
            if _band(call) is None:
                yield f"cell {cell.cell_id!r}: {ast.unparse(call)} does not state its band as low < high"


def stated(sources: Iterable[str]) -> list[Band]:
    """Returns the bands that the calls of `about` in some code state.

    >>> stated(["print(about(loss, 0.30, high=0.42))"])
    [(0.3, 0.42)]
    """
    found = (_band(call) for source in sources for call in calls(parsed(Cell("code", source, "")), "about"))
    return [band for band in found if band is not None]


def strays(text: str, allowed: Sequence[Band]) -> Iterator[str]:
    """Yields what in a stored text is marked as outside of its band, or lies in none of these.

    >>> list(strays("loss ≈ 0.36, then ≈ 0.51", [(0.30, 0.42)]))
    ['holds ≈ 0.51, which lies in no band that the source states']
    """
    for match in re.finditer(rf"{SIGN} \S+ {OUTSIDE}", text):
        yield f"holds {match[0]!r}, a number outside of its band"
    for match in re.finditer(NUMBER, text):
        number = Decimal(match[1])
        rounding = Decimal((0, (5,), int(number.as_tuple().exponent) - 1))
        if not any(
            Decimal(str(low)) - rounding <= number <= Decimal(str(high)) + rounding for low, high in allowed
        ):
            yield f"holds {match[0]}, which lies in no band that the source states"


def _band(call: ast.Call) -> Band | None:
    """Returns the band of a call of `about`; None where it is not two literal numbers, low < high."""
    ends = call.args[1:3] + [
        each.value for name in ("low", "high") for each in call.keywords if each.arg == name
    ]
    try:
        low, high = (float(ast.literal_eval(end)) for end in ends)
    except (TypeError, ValueError):
        return None
    return (low, high) if low < high else None
