"""Numbers that differ from machine to machine, shown all the same: each lies in a band."""

from __future__ import annotations

from typing import Any

from course_lib.i18n import _

SIGN, OUTSIDE = "≈", "✗"  # before such a number; after one that is outside of its band
# What the comparison of stored outputs leaves out, in ASCII: `tests/notebooks/nbval.cfg` has it too.
NUMBER = r"\u2248 (-?\d+(?:\.\d+)?(?:e-\d+)?)"


def about(value: Any, low: float, high: float, *, digits: int = 2) -> str:
    """Returns a number that differs from machine to machine as text; one outside of its band says so.

    >>> about(0.3571, 0.30, 0.42), about(168.3, 100, 200), about(1.23e-7, 0, 1e-6)
    ('≈ 0.36', '≈ 168', '≈ 1.2e-07')
    >>> about(0.514, 0.30, 0.42)
    '≈ 0.51 ✗ (outside 0.30 to 0.42)'

    Args:
        value: the number; NumPy's and TensorFlow's do too.
        low: the smallest that it may be.
        high: the largest.
        digits: how many significant digits are shown; those before the point always are.
    """
    found = float(value)
    shown = f"{SIGN} {_shown(found, digits)}"
    if low <= found <= high:
        return shown
    ends = [max(_shown(end, digits), f"{end:.15g}", key=len) for end in (low, high)]  # as the source has them
    number = f"{shown} {OUTSIDE}"
    return _("{number} (outside {low} to {high})", number=number, low=ends[0], high=ends[1])


def _shown(number: float, digits: int) -> str:
    """Returns a number with so many digits, written out where it is large.

    >>> [_shown(each, 2) for each in (0.3, 9.96, 168.3, 12345.6, 0.00012, -2)]
    ['0.30', '10', '168', '12346', '0.00012', '-2.0']
    """
    text = f"{number:#.{digits}g}"
    return f"{number:.0f}" if "e+" in text or text.endswith(".") else text
