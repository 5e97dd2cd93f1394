"""Exercise 04-break-even: the batch at which several devices are as fast as one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge, with_lists_or_arrays
from course_lib.i18n import _


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


def _part_not_in_brackets(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * 1 - 1 / devices)


def _rounded_down(fixed: float, per_row: float, devices: int) -> int:
    return math.floor(_break_even(fixed, per_row, devices))


def _floor_division(fixed: float, per_row: float, devices: int) -> float:
    return fixed // (per_row * (1 - 1 / devices))


def _rounded_up(fixed: float, per_row: float, devices: int) -> int:
    return math.ceil(_break_even(fixed, per_row, devices))


def _rounded(fixed: float, per_row: float, devices: int) -> int:
    return round(_break_even(fixed, per_row, devices))


def _rounded_to_a_tenth(fixed: float, per_row: float, devices: int) -> float:
    return round(_break_even(fixed, per_row, devices), 1)


def _rounded_to_a_hundredth(fixed: float, per_row: float, devices: int) -> float:
    return round(_break_even(fixed, per_row, devices), 2)


def _speedup_of_one_row(fixed: float, per_row: float, devices: int) -> float:
    return per_row / (fixed + per_row / devices)


def _costs(random: np.random.Generator) -> tuple[float, float, int]:
    """Returns costs of which some break even at so few rows that two rounded digits show."""
    return float(random.integers(20, 90)), float(random.integers(1, 73)) / 8, int(random.integers(2, 17))


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
        (_part_not_in_brackets, "brackets"),
        (_rounded_to_a_tenth, "Do not round"),
        (_rounded_to_a_hundredth, "Do not round"),
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
            _part_not_in_brackets: _(
                "Multiplying comes before subtracting: put brackets around the difference."
            ),
            _rounded_down: rounded,
            _floor_division: rounded,
            _rounded_up: rounded,
            _rounded: rounded,
            _rounded_to_a_tenth: rounded,
            _rounded_to_a_hundredth: rounded,
            _speedup_of_one_row: _("That is the speed-up with one row. Asked for is a number of rows."),
        },
        run=with_lists_or_arrays,
    )
