"""The exercises of lesson 10 on parts and weights; importing it registers the others and the predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from course_lib.specs.received import split
from lessons.lesson_10_custom_training import checks_objective as lesson_10_objective  # noqa: F401 - each registers what it holds
from lessons.lesson_10_custom_training import checks_step as lesson_10_step  # noqa: F401 - each registers what it holds

Sizes = Sequence[int]


def _parts(num_examples: int, num_replicas: int) -> list[int]:
    return list(map(len, split(range(num_examples), num_replicas)))


def _evened_out(num_examples: int, num_replicas: int) -> list[int]:
    return [len(part) for part in np.array_split(np.arange(num_examples), num_replicas)]


def _rest_to_the_last(num_examples: int, num_replicas: int) -> list[int]:
    size = num_examples // num_replicas
    return [size] * (num_replicas - 1) + [num_examples - size * (num_replicas - 1)]


def _all_full(num_examples: int, num_replicas: int) -> list[int]:
    return [-(-num_examples // num_replicas)] * num_replicas


def _below_none(num_examples: int, num_replicas: int) -> list[int]:
    size = -(-num_examples // num_replicas)
    return [min(size, num_examples - at * size) for at in range(num_replicas)]


def _without_empty_ones(num_examples: int, num_replicas: int) -> list[int]:
    return [size for size in _parts(num_examples, num_replicas) if size]


def _fractions(num_examples: int, num_replicas: int) -> list[float]:
    return [num_examples / num_replicas] * num_replicas


def _batch(random: np.random.Generator) -> tuple[int, int]:
    return int(random.integers(1, 20)), int(random.integers(2, 7))


@exercise(
    "10-part-sizes",
    right=_parts,
    also=[
        lambda num_examples, num_replicas: tuple(_parts(num_examples, num_replicas)),
        lambda num_examples, num_replicas: np.array(_parts(num_examples, num_replicas)),
    ],
    wrong=[
        (_evened_out, "as equal as they can be"),
        (_rest_to_the_last, "rounded down"),
        (_all_full, "more examples than there are"),
        (_below_none, "fewer than no example"),
        (_without_empty_ones, "a number for every replica"),
        (_fractions, "whole"),
        (lambda num_examples, num_replicas: None, "return"),
        (2, "function"),
    ],
)
def part_sizes(answer: Callable[..., Any]) -> str | None:
    """The number of examples that each replica gets of a batch."""
    return judge(
        answer,
        _parts,
        drawn(_batch),
        misconceptions={
            _evened_out: _(
                "These parts are as equal as they can be. TensorFlow's are not: look at the picture."
            ),
            _rest_to_the_last: _("Here the parts are rounded down, and the last replica gets the rest."),
            _all_full: _("These are more examples than there are. What is left for the last replicas?"),
            _below_none: _("A replica cannot get fewer than no example."),
            _without_empty_ones: _("Give a number for every replica, also where it gets nothing."),
            _fractions: _("Examples stay whole: round."),
        },
    )


def _default_weights(sizes: Sizes) -> list[float]:
    return [1 / (size * len(sizes)) if size else 0.0 for size in sizes]


def _of_all(sizes: Sizes) -> list[float]:
    return [1 / sum(sizes) if size else 0.0 for size in sizes]


def _of_own(sizes: Sizes) -> list[float]:
    return [1 / size if size else 0.0 for size in sizes]


def _of_replicas(sizes: Sizes) -> list[float]:
    return [1 / len(sizes) if size else 0.0 for size in sizes]


def _of_all_and_replicas(sizes: Sizes) -> list[float]:
    return [1 / (sum(sizes) * len(sizes)) if size else 0.0 for size in sizes]


def _twice(sizes: Sizes) -> list[float]:
    return [1 / (size * len(sizes) ** 2) if size else 0.0 for size in sizes]


def _of_busy_replicas(sizes: Sizes) -> list[float]:
    busy = sum(size > 0 for size in sizes)
    return [1 / (size * busy) if size else 0.0 for size in sizes]


def _divisors(sizes: Sizes) -> list[int]:
    return [size * len(sizes) for size in sizes]


def _sizes(random: np.random.Generator) -> tuple[Sizes]:
    return (random.integers(1, 9, int(random.integers(2, 5))).tolist(),)


@exercise(
    "10-example-weights",
    right=_default_weights,
    also=[
        lambda sizes: [0 if not size else 1.0 / size / len(sizes) for size in sizes],
        lambda sizes: np.array(_default_weights(sizes), np.float32),
    ],
    wrong=[
        (_of_all, "should count"),
        (_of_own, "and then by the number of replicas"),
        (_of_replicas, "mean over its own examples"),
        (_of_all_and_replicas, "A replica does not know"),
        (_twice, "only once"),
        (_of_busy_replicas, "counts the empty ones too"),
        (_divisors, "divisors"),
        (lambda sizes: [1 / size / len(sizes) for size in sizes], "no example at all"),
        (lambda sizes: None, "return"),
        (0.25, "function"),
    ],
)
def example_weights(answer: Callable[..., Any]) -> str | None:
    """What an example of each replica counts under the default reduction of Keras 3."""
    empty = _("A replica may have no example at all. Keras counts all replicas, also these.")
    edges = [Case(([3, 0],), hint=empty), Case(([2, 2, 1, 0],), hint=empty)]
    hint = judge(
        answer,
        _default_weights,
        [*drawn(_sizes), *edges],
        misconceptions={
            _of_all: _("So each example should count. What does it count under the default?"),
            _of_own: _("A replica divides by its own examples, and then by the number of replicas."),
            _of_replicas: _("Each replica first takes the mean over its own examples."),
            _of_all_and_replicas: _("A replica does not know how many examples the others have."),
            _twice: _("Here the number of replicas divides twice. The default divides by it only once."),
            _divisors: _("Those are the divisors. With which factor is a loss multiplied?"),
        },
    )
    if hint is not None and judge(answer, _of_busy_replicas, [*drawn(_sizes), *edges]) is None:
        return _("The number of replicas counts the empty ones too.")
    return hint
