"""Random draws by integer arithmetic alone: the same on every machine, from the same `random.Random`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Item = TypeVar("Item")

_WORD_BYTES = 4


def below(bound: int, source: random.Random) -> int:
    """Returns a whole number from 0 to `bound - 1`."""
    return source.getrandbits(40) * bound >> 40


def one_of(items: Sequence[Item], source: random.Random) -> Item:
    """Returns one of the items; all are equally likely."""
    return items[below(len(items), source)]


def shuffled(items: Sequence[Item], source: random.Random) -> list[Item]:
    """Returns `items` in random order (Fisher and Yates)."""
    mixed = list(items)
    for last in range(len(mixed) - 1, 0, -1):
        other = below(last + 1, source)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


def words(rows: int, columns: int, source: random.Random) -> Integers:
    """Returns random numbers from 0 to 2**32 - 1, `[rows, columns]`; fewer rows are the first of more."""
    drawn = np.frombuffer(source.randbytes(_WORD_BYTES * rows * columns), "<u4")
    return drawn.reshape(rows, columns).astype(np.int64)


def words_below(bound: int, drawn: Integers) -> Integers:
    """Returns whole numbers from 0 to `bound - 1` made of `words`; all are equally likely."""
    return drawn * bound >> 32


def around_zero(spread: int, drawn: Integers) -> Integers:
    """Returns whole numbers from `-spread` to `spread` made of `words`; small ones are likelier.

    Each is the sum of two even draws, one of either half of the word: its density is a triangle.
    """
    return ((drawn & 0xFFFF) + (drawn >> 16) - 0xFFFF) * spread // 0xFFFF
