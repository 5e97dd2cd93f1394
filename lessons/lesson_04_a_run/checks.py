"""What code checks in lesson 04: a moving average, an evaluation on eight devices, a break-even batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import DEVICES, logits_of, small_values, some_reviews
from course_lib.exercises.evaluations_on_devices import Watched, called, small_model
from course_lib.exercises.judging import Case, drawn, judge, with_lists_or_arrays
from course_lib.i18n import _
from course_lib.specs.plan import data_parallel

Array = npt.NDArray[Any]
Values = Sequence[float]
Evaluation = Callable[[Array, Array], tuple[float, float]]


def _moving(start: float, values: Values) -> float:
    return _updated(start, values, weight_of_old=0.9)


def _updated(start: float, values: Values, *, weight_of_old: float) -> float:
    def update(moving: float, value: float) -> float:
        return weight_of_old * moving + (1 - weight_of_old) * float(value)

    return reduce(update, values, float(start))


def _start_and_values(random: np.random.Generator) -> tuple[float, Values]:
    count = int(random.integers(2, 7))
    return float(random.integers(0, 10)), (random.integers(0, 20, count) / 2).tolist()


@exercise("04-moving-average", right=_moving)
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
            lambda start, values: _updated(start, values, weight_of_old=0.1): _(
                "0.9 belongs to the old average and 0.1 to the new value."
            ),
            lambda start, values: _moving(start, [float(np.mean(values))]): _(
                "Make one update for each value, not one with their mean."
            ),
            lambda start, values: _moving(start, values[:1]): _(
                "`return` stands inside the loop, so that only the first value counts."
                " Put it behind the loop."
            ),
            lambda start, values: _moving(start, values[-1:]): _(
                "Every value makes an update, and each update starts from the result of the one before."
            ),
        },
        run=with_lists_or_arrays,
    )


def _losses_and_hits(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Returns the loss of each row, and whether its largest logit is that of its label."""
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return losses, logits.argmax(axis=1) == labels


def evaluate(model: Any, features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean loss and the accuracy, of logits that eight devices computed."""
    dtensor = import_module("course_lib.dtensor")
    filled = np.pad(features, ((0, -len(labels) % DEVICES), (0, 0)))
    rows = dtensor.pack(filled, data_parallel(DEVICES).layout(("batch", "features")))
    logits = dtensor.to_numpy(model.evaluate_logits(rows))[: len(labels)]
    losses, hits = _losses_and_hits(logits.astype(np.float64), labels)
    return float(losses.mean()), float(hits.mean())


def _evaluated(features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean loss and the accuracy, by NumPy on one device."""
    return _with_rows_filled_up(counted=False, of_rows=False)(features, labels)


def _with_rows_filled_up(*, counted: bool, of_rows: bool) -> Evaluation:
    """Returns an evaluation that adds rows of zeros with the label 0.

    Args:
        counted: whether their values are in the sums.
        of_rows: whether the sums are divided by the number of rows instead of reviews.
    """

    def evaluation(features: Array, labels: Array) -> tuple[float, float]:
        rest = -len(labels) % DEVICES
        logits = logits_of(small_values(), np.pad(features, ((0, rest), (0, 0))))
        losses, hits = _losses_and_hits(logits, np.pad(labels, (0, rest)))
        summed = len(logits) if counted else len(labels)
        divisor = len(logits) if of_rows else len(labels)
        return float(losses[:summed].sum()) / divisor, float(hits[:summed].sum()) / divisor

    return evaluation


def _rest_dropped(features: Array, labels: Array) -> tuple[float, float]:
    rows = len(labels) // DEVICES * DEVICES
    return _evaluated(features[:rows], labels[:rows])


def _cases() -> list[Case]:
    def with_a_rest(random: np.random.Generator) -> tuple[Array, Array]:
        return some_reviews(random, int(random.choice([11, 13, 18, 21])))

    few = _("With 3 reviews five devices get nothing but rows that fill up. Their weight is 0.")
    return [
        *drawn(with_a_rest, count=5),
        Case(some_reviews(np.random.default_rng(3), 75)),  # more than one batch of 64
        Case(
            some_reviews(np.random.default_rng(2), 16),
            _("16 reviews divide by 8: there is nothing to fill up."),
        ),
        Case(some_reviews(np.random.default_rng(2), 3), few),
    ]


@exercise("04-evaluate", right=evaluate, on_devices=True)
def evaluation(answer: Callable[..., Any]) -> str | None:
    """The mean loss and the accuracy over reviews whose number does not divide by 8."""
    model, cases = Watched(small_model()), _cases()
    hint = judge(
        answer,
        _evaluated,
        cases,
        misconceptions={
            _with_rows_filled_up(counted=True, of_rows=True): _(
                "The rows that fill up are counted like reviews. Give each row a weight."
            ),
            _with_rows_filled_up(counted=False, of_rows=True): _(
                "Divide by the number of reviews, not by the number of rows."
            ),
            _with_rows_filled_up(counted=True, of_rows=False): _(
                "Does each sum leave out the rows that fill up?"
            ),
            _rest_dropped: _("Here every review must count: fill the rows up instead of leaving some out."),
        },
        run=lambda function, *inputs: called(function, model, *inputs),
        advice=_("Return two numbers: the mean loss and the accuracy."),
    )
    if hint and model.asked_to_train:
        return _(
            "Training normalises a row with the moments of its batch. Ask `model.evaluate_logits`, which"
            " takes the moving moments."
        )
    return hint or model.fault(sum(len(case.inputs[1]) for case in cases))


def _break_even(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * (1 - 1 / devices))


def _costs(random: np.random.Generator) -> tuple[float, float, int]:
    """Returns costs of which some break even at so few rows that two rounded digits show."""
    return float(random.integers(20, 90)), float(random.integers(1, 73)) / 8, int(random.integers(2, 17))


@exercise("04-break-even", right=_break_even)
def break_even(answer: Callable[..., Any]) -> str | None:
    """The number of rows at which several devices are as fast as one."""
    return judge(
        answer,
        _break_even,
        drawn(_costs),
        misconceptions={
            lambda fixed, per_row, devices: fixed / per_row: _(
                "This forgets that each of the devices still computes its share of the rows."
            ),
            lambda fixed, per_row, devices: fixed / (per_row * devices): _(
                "Each row takes `per_row` on one device. Which part of it is saved when the rows are shared?"
            ),
            lambda fixed, per_row, devices: fixed / per_row * (1 - 1 / devices): _(
                "This multiplies by the part of each row's time that is saved. Divide by it: without"
                " brackets, `a / b * c` multiplies by `c`."
            ),
            lambda *costs: math.ceil(_break_even(*costs)): _(
                "Do not round: the number of rows keeps its fraction."
            ),
        },
        run=with_lists_or_arrays,
    )
