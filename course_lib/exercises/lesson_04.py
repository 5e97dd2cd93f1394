"""The exercises of lesson 04; importing it registers those of its other modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises import (  # noqa: F401 - each registers what it holds
    lesson_04_evaluation,
    lesson_04_predictions,
)
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _

Array = npt.NDArray[Any]


@exercise(
    "04-learning-rate",
    right=0.64,
    wrong=[
        (0.01, "64 times smaller"),
        (0.01 / 64, "wrong way"),
        (0.08, "counts the devices, or takes a root"),
        (0.00125, "counts the devices"),
        (64, "by how much"),
        (1.0, "the gradient of the mean"),
        (np.array([0.01]), "64 times smaller"),
    ],
    also=[np.float16(0.64)],
)
def learning_rate(answer: float) -> str | None:
    """The learning rate on the mean that equals 0.01 on the sum of 64."""
    devices = _("That counts the devices. How many losses does the sum add up?")
    hints = {
        0.01: _("With the same rate every update is 64 times smaller: the mean is the sum divided by 64."),
        0.01 / 64: _(
            "That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger."
        ),
        0.08: _(
            "8 times the rate counts the devices, or takes a root of 64. How many losses does the sum add up?"
        ),
        0.01 / 8: devices,
        64: _("That is by how much the rate changes. What is the rate then?"),
    }
    for wrong, hint in hints.items():
        if _near(answer, wrong):
            return hint
    if not _near(answer, 0.64):
        return _("Compare the gradient of the sum with the gradient of the mean over 64 reviews.")
    return None


def _near(answer: float, value: float) -> bool:
    """Returns whether an answer is the value up to the rounding of a float16."""
    return math.isclose(answer, value, rel_tol=1e-3)


def _moving(start: float, values: Array) -> float:
    return reduce(lambda moving, value: 0.9 * moving + 0.1 * float(value), values, float(start))


def _moving_swapped(start: float, values: Array) -> float:
    return reduce(lambda moving, value: 0.1 * moving + 0.9 * float(value), values, float(start))


def _moving_from_zero(start: float, values: Array) -> float:
    return _moving(0.0, values)


def _moving_with_mean(start: float, values: Array) -> float:
    return 0.9 * start + 0.1 * float(np.mean(values)) if len(values) else start


def _mean_of_values(start: float, values: Array) -> float:
    return float(np.mean(values)) if len(values) else start


def _moving_added(start: float, values: Array) -> float:
    return reduce(lambda moving, value: 0.9 * moving + float(value), values, float(start))


def _moving_backwards(start: float, values: Array) -> float:
    return _moving(start, values[::-1])


def _moving_once(start: float, values: Array) -> float:
    return _moving(start, values[-1:])


def _moving_ends_early(start: float, values: Array) -> float | None:
    return _moving(start, values[:1]) if len(values) else None


def _start_and_values(random: np.random.Generator) -> tuple[float, Array]:
    count = int(random.integers(2, 7))
    return float(random.integers(0, 10)), np.array(random.integers(0, 20, count) / 2, np.float32)


@exercise(
    "04-moving-average",
    right=_moving,
    also=[
        lambda start, values: 0.9 ** len(values) * start + _moving(0, values),
        lambda start, values: (
            0.9 ** len(values) * start + np.dot(0.1 * 0.9 ** np.arange(len(values))[::-1], values)
        ),
        lambda start, values: _moving(start, values[:-1]) * 0.9 + values[-1] * 0.1 if values.size else start,
    ],
    wrong=[
        (_moving_swapped, "0.9 belongs to the old"),
        (_moving_from_zero, "begins at `start`"),
        (_moving_with_mean, "one update for each value"),
        (_mean_of_values, "plain mean"),
        (_moving_added, "tenth"),
        (_moving_backwards, "first value comes first"),
        (_moving_once, "every value"),
        (_moving_ends_early, "inside the loop"),
        (lambda start, values: [_moving(start, values[: at + 1]) for at in range(len(values))], "single"),
        (lambda start, values: _moving(start, values) if values.size else 0.0, "no value"),
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
            Case((5.0, np.array([], np.float32)), _("With no value there is no update: `start` stays.")),
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
            _moving_once: _("Update with every value, not with the last one alone."),
        },
    )


def _break_even(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * (1 - 1 / devices))


def _without_own_share(fixed: float, per_row: float, devices: int) -> float:
    return fixed / per_row


def _all_rows_saved(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * devices)


def _share_as_saving(fixed: float, per_row: float, devices: int) -> float:
    return fixed * devices / per_row


def _devices_less_one(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * (devices - 1))


def _fixed_on_each(fixed: float, per_row: float, devices: int) -> float:
    return devices * _break_even(fixed, per_row, devices)


def _wrong_sign(fixed: float, per_row: float, devices: int) -> float:
    return -_break_even(fixed, per_row, devices)


def _not_in_brackets(fixed: float, per_row: float, devices: int) -> float:
    return fixed / per_row * (1 - 1 / devices)


def _difference_not_in_brackets(fixed: float, per_row: float, devices: int) -> float:
    return fixed / per_row - per_row / devices


def _rounded_down(fixed: float, per_row: float, devices: int) -> int:
    return math.floor(_break_even(fixed, per_row, devices))


def _floor_division(fixed: float, per_row: float, devices: int) -> float:
    return fixed // (per_row * (1 - 1 / devices))


def _rounded_up(fixed: float, per_row: float, devices: int) -> int:
    return math.ceil(_break_even(fixed, per_row, devices))


def _rounded(fixed: float, per_row: float, devices: int) -> int:
    return round(_break_even(fixed, per_row, devices))


def _speedup_of_one_row(fixed: float, per_row: float, devices: int) -> float:
    return per_row / (fixed + per_row / devices)


def _costs(random: np.random.Generator) -> tuple[float, float, int]:
    return float(random.integers(20, 90)), float(random.integers(1, 9)) / 8, int(random.integers(2, 17))


@exercise(
    "04-break-even",
    right=_break_even,
    also=[
        lambda fixed, per_row, devices: fixed * devices / (per_row * (devices - 1)),
        lambda fixed, per_row, devices: fixed / (per_row - per_row / devices),
        lambda fixed, per_row, devices: np.linalg.solve([[per_row - per_row / devices]], [fixed])[0],
    ],
    wrong=[
        (_without_own_share, "share of the rows"),
        (_all_rows_saved, "is saved"),
        (_share_as_saving, "one part in"),
        (_devices_less_one, "divided among"),
        (_fixed_on_each, "once"),
        (_wrong_sign, "below 0"),
        (_speedup_of_one_row, "number of rows"),
        (_not_in_brackets, "brackets"),
        (_difference_not_in_brackets, "brackets"),
        (_rounded_down, "Do not round"),
        (_rounded_up, "Do not round"),
        (_rounded, "Do not round"),
        (_floor_division, "Do not round"),
        (lambda fixed, per_row, devices: None, "return"),
        (lambda fixed, per_row: fixed / per_row, "positional argument"),
        (64, "function"),
    ],
)
def break_even(answer: Callable[..., Any]) -> str | None:
    """The number of rows at which several devices are as fast as one."""
    brackets = _("Dividing comes first: put brackets around all that `fixed` is to be divided by.")
    rounded = _("Do not round: the number of rows keeps its fraction.")
    return judge(
        answer,
        _break_even,
        drawn(_costs),
        misconceptions={
            _without_own_share: _(
                "This forgets that each of the devices still computes its share of the rows."
            ),
            _all_rows_saved: _(
                "Each row takes `per_row` on one device. Which part of it is saved when the rows are shared?"
            ),
            _share_as_saving: _(
                "Several devices save more than one part in `devices`: they save all the others."
            ),
            _devices_less_one: _("The rows are divided among all devices: one part in `devices` stays."),
            _fixed_on_each: _("The devices spend the fixed time side by side: it counts once."),
            _wrong_sign: _("A number of rows is not below 0. Which is larger, 1 or `1 / devices`?"),
            _not_in_brackets: brackets,
            _difference_not_in_brackets: brackets,
            _rounded_down: rounded,
            _floor_division: rounded,
            _rounded_up: rounded,
            _rounded: rounded,
            _speedup_of_one_row: _("That is the speed-up with one row. Asked for is a number of rows."),
        },
    )
