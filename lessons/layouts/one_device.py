"""Programs that a reader writes as one device runs them, with an all-reduce that is given, run on several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.values import Array, plain

Program = Callable[..., Any]
_MOST_ALL_REDUCES = 100


class _Waits(Exception):  # noqa: N818 - not an error: a device has come to an all-reduce
    def __init__(self, array: Array) -> None:
        self.array = array


def on_each(program: Program, parts: Sequence[tuple[Any, ...]]) -> tuple[list[Any] | None, int]:
    """Runs `program(*own, add_up)` on each device, whose own arguments are these.

    All start again after each all-reduce, with the sums of those before it.

    Returns:
        What each device returns, or None if one of them returns nothing; and how many numbers were exchanged.
    """
    sums: list[Array] = []
    for _round in range(_MOST_ALL_REDUCES):
        results, waiting = [], []
        for own in parts:
            try:
                results.append(program(*map(_fresh, own), _all_reduce(sums)))
            except _Waits as wait:
                waiting.append(wait.array)
        if not waiting:
            carried = sum(each.size for each in sums)
            return None if any(each is None for each in results) else results, carried
        sums.append(np.sum(waiting, axis=0).astype(np.float32))
    return [], 0


def _fresh(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(_fresh(each) for each in given)
    return given.copy() if isinstance(given, np.ndarray) else given


def _all_reduce(sums: Sequence[Array]) -> Program:
    """Returns a function that gives one of these sums after the other, and then waits for more."""
    known = iter(sums)

    def add_up(array: Any) -> Array:
        for total in known:
            return total.copy()  # each device has its own
        raise _Waits(np.asarray(plain(array), np.float64))

    return add_up
