"""Comparing what a reader's function gives with what is expected, in plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.shown import is_long

Array = npt.NDArray[Any]

TOLERANCE = 1e-4  # of the largest number of a result: for float32, and for a guard such as + 1e-8
_AT_ZERO, _TO_WHOLE = 1e-6, 1e-9


def close(value: object, expected: object, tolerance: float = TOLERANCE) -> bool:
    """Returns whether two plain values agree, their fractions up to `tolerance` of the largest one.

    Whole numbers must be equal, and not-a-number agrees with itself alone.

    >>> close(0.50001, 0.5), close(7, 8), close((1.0, 2), (1, 2)), close((3.0,), 3)
    (True, False, True, False)
    """
    mine, right = _as_numbers(value), _as_numbers(expected)
    if right is not None:
        return mine is not None and mine.shape == right.shape and _near(mine, right, tolerance)
    pairs = _pairs(value, expected)
    if pairs is not None:
        return all(close(ours, theirs, tolerance) for _place, ours, theirs in pairs)
    return type(value) is type(expected) and bool(value == expected)


def _pairs(value: object, expected: object) -> list[tuple[str, object, object]] | None:
    """Returns the parts of two values with their place; None where these are no tuples or dicts alike."""
    if isinstance(value, tuple) and isinstance(expected, tuple) and len(value) == len(expected):
        return [(f"[{at}]", *pair) for at, pair in enumerate(zip(value, expected, strict=True))]
    if isinstance(value, dict) and isinstance(expected, dict) and value.keys() == expected.keys():
        return [(str(name), value[name], expected[name]) for name in expected]
    return None


def first_difference(
    value: object, expected: object, tolerance: float, place: str = ""
) -> tuple[str, object, object]:
    """Returns the first part of a long value that differs from the expected one, with its place."""
    if isinstance(value, dict) or is_long(value):
        for inner, ours, theirs in _pairs(value, expected) or ():
            if not close(ours, theirs, tolerance):
                return first_difference(ours, theirs, tolerance, place + inner)
    return place, value, expected


def _near(ours: Array, theirs: Array, tolerance: float) -> bool:
    largest = float(np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
    allowed = _TO_WHOLE if theirs.dtype.kind in "iu" else tolerance * largest + _AT_ZERO
    return bool(np.allclose(ours, theirs, rtol=0, atol=allowed, equal_nan=True))


def _as_numbers(value: object) -> Array | None:
    """Returns a plain value as an array of numbers; None if it is not one, or not of one shape."""
    if not isinstance(value, (int, float, tuple)):
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "iuf" else None
