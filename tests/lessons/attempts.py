"""Right and wrong attempts at an exercise, by which its check is tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attempts:
    """Answers to one exercise.

    Attributes:
        right: answers that its check must accept: other ways to the same, not other forms of one value.
        wrong: plausible answers that it must refuse, each with words of the hint that it must give.
        long: whether its check takes seconds; after the first few, its attempts are then tried weekly.
    """

    right: tuple[object, ...]
    wrong: tuple[tuple[object, str], ...]
    long: bool = False
