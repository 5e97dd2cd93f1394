"""Exercise 04-moving-average: a moving average that is updated with one value after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge, with_lists_or_arrays
from course_lib.i18n import _

Values = Sequence[float]


def _moving(start: float, values: Values) -> float:
    return reduce(lambda moving, value: 0.9 * moving + 0.1 * float(value), values, float(start))


def _moving_swapped(start: float, values: Values) -> float:
    return reduce(lambda moving, value: 0.1 * moving + 0.9 * float(value), values, float(start))


def _moving_from_zero(start: float, values: Values) -> float:
    return _moving(0.0, values)


def _moving_with_mean(start: float, values: Values) -> float:
    return 0.9 * start + 0.1 * float(np.mean(values)) if len(values) else start


def _mean_of_values(start: float, values: Values) -> float:
    return float(np.mean(values)) if len(values) else start


def _moving_added(start: float, values: Values) -> float:
    return reduce(lambda moving, value: 0.9 * moving + float(value), values, float(start))


def _moving_backwards(start: float, values: Values) -> float:
    return _moving(start, values[::-1])


def _moving_once(start: float, values: Values) -> float:
    return _moving(start, values[-1:])


def _moving_forgets(start: float, values: Values) -> float:
    moving = start
    for value in values:
        moving = 0.9 * start + 0.1 * value
    return moving


def _moving_ends_early(start: float, values: Values) -> float | None:
    return _moving(start, values[:1]) if len(values) else None


def _moving_from_first(start: float, values: Values) -> float:
    return _moving(values[0], values[1:]) if len(values) else start


def _moving_from_second(start: float, values: Values) -> float:
    return _moving(start, values[1:])


def _moving_while_any_is_left(start: float, values: list[float]) -> float:
    while values:
        start = 0.9 * start + 0.1 * values.pop(0)
    return start


def _powers(count: int) -> npt.NDArray[Any]:
    return 0.9 ** np.arange(count)[::-1]


def _start_and_values(random: np.random.Generator) -> tuple[float, Values]:
    count = int(random.integers(2, 7))
    return float(random.integers(0, 10)), (random.integers(0, 20, count) / 2).tolist()


@exercise(
    "04-moving-average",
    right=_moving,
    also=[
        lambda start, values: 0.9 ** len(values) * start + _moving(0, values),
        lambda start, values: 0.9 ** len(values) * start + np.dot(0.1 * _powers(len(values)), values),
        lambda start, values: _moving(start, values[:-1]) * 0.9 + values[-1] * 0.1 if values else start,
        lambda start, values: 0.9**values.size * start + 0.1 * np.sum(values * _powers(values.size)),
        _moving_while_any_is_left,
    ],
    wrong=[
        (_moving_swapped, "0.9 belongs to the old"),
        (_moving_from_zero, "begins at `start`"),
        (_moving_with_mean, "one update for each value"),
        (_mean_of_values, "plain mean"),
        (_moving_added, "tenth"),
        (_moving_backwards, "first value comes first"),
        (_moving_once, "the one before"),
        (_moving_forgets, "the one before"),
        (_moving_from_first, "`start` counts"),
        (_moving_from_second, "skips the first"),
        (_moving_ends_early, "inside the loop"),
        (lambda start, values: [_moving(start, values[: at + 1]) for at in range(len(values))], "single"),
        (lambda start, values: _moving(start, values) if values else 0.0, "no value"),
        (lambda start, values: None, "return"),
        (0.9, "function"),
    ],
)
def moving_average(answer: Callable[..., Any]) -> str | None:
    """The moving average after one update for each value."""
    return judge(
        answer,
        _moving,
        [
            *drawn(_start_and_values),
            Case((5.0, []), _("With no value there is no update: `start` stays.")),
        ],
        misconceptions={
            _moving_swapped: _("0.9 belongs to the old average and 0.1 to the new value."),
            _moving_from_zero: _("The average begins at `start`, not at 0."),
            _moving_with_mean: _("Make one update for each value, not one with their mean."),
            _mean_of_values: _("That is the plain mean of the values. Late values must count more."),
            _moving_added: _("Only a tenth of each value is added."),
            _moving_backwards: _("The first value comes first: the last one must count most."),
            _moving_ends_early: _(
                "`return` stands inside the loop, so that only the first value counts."
                " Put it behind the loop."
            ),
            _moving_once: _(
                "Every value makes an update, and each update starts from the result of the one before."
            ),
            _moving_from_first: _("`start` counts too: the first value makes an update like the others."),
            _moving_from_second: _("This skips the first value. Update with every value."),
        },
        run=with_lists_or_arrays,
    )
