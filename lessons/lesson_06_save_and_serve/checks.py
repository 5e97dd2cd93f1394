"""The exercises of lesson 06; importing it registers those of its other modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from lessons.lesson_06_save_and_serve import checks_gather as lesson_06_gather  # noqa: F401 - each registers what it holds
from lessons.lesson_06_save_and_serve import checks_on_mesh as lesson_06_on_mesh  # noqa: F401 - each registers what it holds
from lessons.lesson_06_save_and_serve import checks_server as lesson_06_server  # noqa: F401 - each registers what it holds
from lessons.lesson_06_save_and_serve import small_classifier

Array = npt.NDArray[Any]
Values = dict[str, Array]


def _small_values(random: np.random.Generator) -> Values:
    """Returns the values of a model with 3 features, 4 hidden units and 2 classes."""
    shapes = {
        "hidden_weight": (3, 4),
        "hidden_bias": (4,),
        "logits_weight": (4, 2),
        "logits_bias": (2,),
        "moving_mean": (4,),
    }
    values = {name: random.integers(-8, 9, shape) / 4 for name, shape in shapes.items()}
    values["logits_bias"] = np.array([0.25, -0.5]) + np.round(random.normal(size=2), 1)
    return {**values, "moving_variance": random.integers(1, 8, 4) / 4}


def _cases() -> list[Case]:
    random = np.random.default_rng(0)
    told = _("a model of 3 features, 4 hidden units and 2 classes, and a row of 3 numbers")
    return [Case((_small_values(random), random.integers(1, 5, 3) / 2), told=told) for _number in range(20)]


def _of_one(
    function: Callable[[Values, Array], Array],
) -> Callable[[Values, Array], Array]:
    return lambda values, row: np.asarray(function(values, row[None])[0])


def _computed(values: Values, row: Array) -> Array:
    return np.asarray(small_classifier.with_own_moments(values, row[None])[0])


def _divided_by_zero(values: Values, row: Array) -> Array:
    """Adds nothing to the variance of one row; with one less than the number of rows it is the same."""
    units = small_classifier.hidden(values, row[None])
    with np.errstate(all="ignore"):
        return np.asarray(_classified(values, (units - units.mean(axis=0)) / units.std(axis=0))[0])


def _over_the_units(values: Values, row: Array) -> Array:
    """Takes the mean and the variance over the hidden units of the row."""
    units = small_classifier.hidden(values, row)
    return _classified(values, (units - units.mean(axis=0)) / np.sqrt(units.var(axis=0) + 0.00001))


def _classified(values: Values, normal: Array) -> Array:
    return small_classifier.softmax(normal @ values["logits_weight"] + values["logits_bias"])


@exercise(
    "06-alone",
    right=lambda values, row: small_classifier.softmax(values["logits_bias"]),
    also=[_computed],
    wrong=[
        (_of_one(small_classifier.served), "moving moments"),
        (_of_one(small_classifier.without_moments), "not normalised"),
        (lambda values, row: values["logits_bias"], "logits"),
        (lambda values, row: (0.5, 0.5), "last bias"),
        (_divided_by_zero, "0 / 0"),
        (_over_the_units, "over the units"),
        (lambda values, row: small_classifier.with_own_moments(values, row[None]), "without an axis"),
        (lambda values, row: float(small_classifier.softmax(values["logits_bias"])[1]), "both"),
        (lambda values, row: None, "return"),
        (lambda values, row: small_classifier.softmax(values["hidden_bias"]), "By how much"),
        ((0.5, 0.5), "function"),
    ],
)
def alone(answer: Callable[..., Any]) -> str | None:
    """What a model answers for a single row where it normalises with the moments of the batch."""
    return judge(
        answer,
        lambda values, row: small_classifier.softmax(values["logits_bias"]),
        _cases(),
        misconceptions={
            _of_one(small_classifier.served): _(
                "These are the answers with the moving moments. Here the batch's own are asked for."
            ),
            _of_one(small_classifier.without_moments): _(
                "The hidden units are not normalised here. Subtract their mean over the batch first."
            ),
            lambda values, row: values["logits_bias"]: _("These are logits. Take the softmax of them."),
            lambda values, row: (0.5, 0.5): _("So it would be if the last bias were zero. It need not be."),
            _divided_by_zero: _(
                "This is 0 / 0 somewhere. Is 0.00001 added to the variance, under the root? And does the"
                " variance divide by the number of rows, not by one less?"
            ),
            _over_the_units: _(
                "This is the mean over the units. The mean over the batch is of each unit, over the rows."
            ),
            lambda values, row: small_classifier.with_own_moments(values, row[None]): _(
                "Return two numbers, without an axis for the one row."
            ),
            lambda values, row: small_classifier.softmax(values["logits_bias"])[1]: _(
                "Return both probabilities."
            ),
        },
        advice=_("By how much does a hidden unit of a single row differ from its mean over the batch?"),
    )
