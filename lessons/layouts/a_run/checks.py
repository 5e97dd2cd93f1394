"""What code checks in this lesson: two kinds of mistakes counted on eight devices, and a break-even batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices, refuse_new_axis
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.small_model import FEATURES, logits_of, small_model, small_values

Errors = Callable[..., Any]

_MESH = MeshSpec([("batch", 8)])


def _padded(random: np.random.Generator, num_reviews: int) -> tuple[Array, Array, Array]:
    """Returns rows that divide by eight, labels and weights; padding has the label 0 or 1."""
    num_rows = num_reviews + -num_reviews % _MESH.size
    x = np.array(random.integers(-4, 5, (num_rows, FEATURES)) / 2, np.float32)
    y, weight = random.integers(0, 2, num_rows), np.zeros(num_rows, np.float32)
    weight[random.permutation(num_rows)[:num_reviews]] = 1
    return x, y, weight


def _errors(x: Array, y: Array, weight: Array, *, own_moments: bool = False) -> tuple[float, float]:
    answers = logits_of(small_values(), x, own_moments=own_moments).argmax(axis=1)
    return float(weight @ ((y == 0) & (answers == 1))), float(weight @ ((y == 1) & (answers == 0)))


def _called(answer: Errors, x: Array, y: Array, weight: Array) -> list[float] | None:
    """Returns what a reader's function makes of DTensors on eight devices, in a `tf.function`."""
    refuse_new_axis(answer)
    with on_devices() as (tf, real):
        variable = tf.experimental.dtensor.DVariable
        model = small_model(
            small_values(),
            lambda value: variable(real.pack(value, LayoutSpec([UNSHARDED] * value.ndim, _MESH))),
        )
        rows = [real.pack(x, LayoutSpec(["batch", UNSHARDED], _MESH))]
        rows += [real.pack(each, LayoutSpec(["batch"], _MESH)) for each in (y, weight)]
        found = tf.function(lambda *split: answer(model, *split))(*rows)
        if found is None:
            return None
        return [float(each) for part in tf.nest.flatten(found) for each in np.ravel(real.to_numpy(part))]


@exercise("a_run-errors", right=_errors)
def errors(answer: Errors) -> str | None:
    """The numbers of negative reviews called positive, and of positive ones called negative."""
    return judge(
        answer,
        _errors,
        drawn(lambda random: _padded(random, int(random.choice([11, 13, 18, 21]))), count=4),
        misconceptions={
            lambda x, y, weight: _errors(x, y, np.ones_like(weight)): _(
                "The rows that fill up are counted like reviews. Multiply by the weights."
            ),
            lambda *rows: _errors(*rows, own_moments=True): _(
                "The rows are normalised with the moments of their batch. Give the model the moving moments."
            ),
        },
        run=_called,
        advice=_(
            "Call the model as `evaluate` does. Sum the weights of all rows with label 0 and answer 1, then"
            " of those with label 1 and answer 0."
        ),
    )


def _break_even(fixed: float, per_row: float, devices: int) -> float:
    return fixed / (per_row * (1 - 1 / devices))


def _costs(random: np.random.Generator) -> tuple[float, float, int]:
    """Returns costs of which some break even at so few rows that two rounded digits show."""
    return float(random.integers(20, 90)), float(random.integers(1, 73)) / 8, int(random.integers(2, 17))


@exercise("a_run-break-even", right=_break_even)
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
        },
    )
