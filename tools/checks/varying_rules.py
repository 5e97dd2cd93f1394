"""Numbers that vary, `≈ 0.36`: the source states the band of each, and what is stored lies in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from course_lib.varying import NUMBER, OUTSIDE, SIGN

Band = tuple[float, float]


def stated(sources: Iterable[str]) -> list[Band]:
    """Returns the bands, two literal numbers, that the calls of `about` in some code state.

    >>> stated(["print(about(loss, 0.30, 0.42), about(x, low, high))", "%%writefile about"])
    [(0.3, 0.42)]
    """
    return [band for source in sources for call in _calls(source) for band in _literal(call.args[1:3])]


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
        ends = ((Decimal(str(low)) - rounding, Decimal(str(high)) + rounding) for low, high in allowed)
        if not any(low <= number <= high for low, high in ends):
            yield f"holds {match[0]}, which lies in no band that the source states"


def _calls(source: str) -> Iterator[ast.Call]:
    """Yields the calls of `about` in a cell; none in one that is no Python, as with a magic."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "about":
            yield node


def _literal(ends: Sequence[ast.expr]) -> Iterator[Band]:
    """Yields the band that two literal numbers are; nothing for other ends."""
    try:
        low, high = (float(ast.literal_eval(end)) for end in ends)
    except (TypeError, ValueError):
        return
    yield low, high
