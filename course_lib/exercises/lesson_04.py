"""The exercises of lesson 04; importing it registers those of its other modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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

Values = Sequence[float]


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


def _called(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns what a function gives, an array of one number as that number.

    A function that cannot do with a list is called again with an array.
    """
    arrays = [np.array(each) if isinstance(each, list) else each for each in inputs]
    try:
        value = function(*inputs)
    except Exception as error:
        try:
            value = function(*arrays)
        except Exception:
            raise error from None
    return value.reshape(()) if isinstance(value, np.ndarray) and value.size == 1 else value


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
        (_moving_once, "every value"),
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
            _moving_once: _("Update with every value, not with the last one alone."),
            _moving_from_first: _("`start` counts too: the first value makes an update like the others."),
            _moving_from_second: _("This skips the first value. Update with every value."),
        },
        run=_called,
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
        (_not_in_brackets, "multiplies"),
        (lambda fixed, per_row, devices: fixed * (devices - 1) / (per_row * devices), "multiplies"),
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
            _not_in_brackets: _(
                "This multiplies by the part of each row's time that is saved. Divide by it: without"
                " brackets, `a / b * c` multiplies by `c`."
            ),
            _difference_not_in_brackets: _(
                "Dividing comes first: put brackets around all that `fixed` is to be divided by."
            ),
            _rounded_down: rounded,
            _floor_division: rounded,
            _rounded_up: rounded,
            _rounded: rounded,
            _speedup_of_one_row: _("That is the speed-up with one row. Asked for is a number of rows."),
        },
        run=_called,
    )
