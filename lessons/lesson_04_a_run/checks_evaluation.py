"""Exercise 04-evaluate: an evaluation on eight devices that counts every review once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import (
    Mean,
    divided_by_padded,
    evaluated,
    first_repeated,
    last_repeated,
    loss_alone,
    mean_of_batches,
    mean_of_devices,
    padding_counted,
    partly_counted,
    rest_dropped,
    some_reviews,
    some_reviews_and_a_rest,
    summed,
    the_other_way_round,
)
from course_lib.exercises.evaluations_on_devices import (
    Watched,
    called,
    compiled_on_every_device,
    each_row,
    evaluate,
    on_every_device,
    small_model,
)
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from course_lib.specs.plan import data_parallel

Array = npt.NDArray[Any]

_ROWS_IN_A_BATCH = (8, 16, 24, 32, 64)
_MANY = 75  # reviews: more than the largest of these batches, and not a multiple of any
_MEANS = [means for means in product(Mean, repeat=2) if means[0] != means[1] or Mean.SUM_OF_ROWS in means]


def _with_model(function: Callable[[Array, Array], object]) -> Callable[..., object]:
    return lambda model, features, labels: function(features, labels)


def _packed(features: Array) -> Any:
    padded = np.pad(features, ((0, -len(features) % 8), (0, 0)))
    return import_module("course_lib.dtensor").pack(padded, data_parallel(8).layout(("batch", "features")))


def _by_name(model: Any, features: Array, labels: Array) -> dict[str, float]:
    return dict(zip(("loss", "accuracy"), evaluate(model, features, labels), strict=True))


@exercise(
    "04-evaluate",
    right=evaluate,
    also=[lambda model, features, labels: np.array(evaluate(model, features, labels))],
    wrong=[
        (_with_model(padding_counted), "counted like reviews"),
        (_with_model(divided_by_padded), "number of reviews"),
        (_with_model(rest_dropped), "every review"),
        (_with_model(mean_of_devices), "mean of the devices' means"),
        *((_with_model(mean_of_batches(size)), "mean of the batches' means") for size in _ROWS_IN_A_BATCH),
        *((_with_model(partly_counted(*means)), "each sum leave out") for means in _MEANS),
        (lambda model, features, labels: model.train_logits(_packed(features)), "evaluate_logits"),
        (lambda model, features, labels: model(_packed(features)), "evaluate_logits"),
        (_with_model(last_repeated), "copies of reviews"),
        (_with_model(first_repeated), "copies of reviews"),
        (_with_model(loss_alone), "two numbers"),
        (lambda model, features, labels: model.evaluate_logits(features), "not packed"),
        (_with_model(summed), "sums"),
        (_with_model(the_other_way_round), "loss first"),
        (_with_model(evaluated), "never asked"),
        (on_every_device, "every device"),
        (lambda model, features, labels: evaluate(model, features[8:], labels[8:]), "smaller input"),
        (lambda model, features, labels: None, "return"),
        (each_row, "divide by 8"),
        (_by_name, "two numbers"),
        (compiled_on_every_device, "every device"),
        ((0.5, 0.5), "function"),
    ],
    on_devices=True,
)
def evaluation(answer: Callable[..., Any]) -> str | None:
    """The mean loss and the accuracy over reviews whose number does not divide by 8."""
    model = Watched(small_model())
    features, labels = some_reviews(np.random.default_rng(2), 16)
    two_numbers = _("Return two numbers: the mean loss and the accuracy.")
    given: list[object] = []

    def run(function: Callable[..., Any], *inputs: Array) -> Any:
        given.append(called(function, model, *inputs))
        return given[-1]

    repeated = _("You fill up with copies of reviews and count them. Give each copy the weight 0.")
    of_batches = _(
        "This is the mean of the batches' means. The last batch has fewer reviews and counts"
        " less: add up over all rows, then divide once."
    )
    left_out = _("Does each sum leave out the rows that fill up?")
    hint = judge(
        answer,
        evaluated,
        [
            *drawn(some_reviews_and_a_rest, count=5),
            Case(some_reviews(np.random.default_rng(3), _MANY)),
            Case((features, labels), _("16 reviews divide by 8: there is nothing to fill up.")),
            Case(
                (features[:3], labels[:3]),
                _("With 3 reviews five devices get nothing but rows that fill up. Their weight is 0."),
            ),
        ],
        misconceptions={
            padding_counted: _("The rows that fill up are counted like reviews. Give each row a weight."),
            divided_by_padded: _("Divide by the number of reviews, not by the number of rows."),
            rest_dropped: _("Here every review must count: fill the rows up instead of leaving some out."),
            mean_of_devices: _(
                "This is the mean of the devices' means. Devices with fewer reviews must count less:"
                " add up over all rows, then divide once."
            ),
            last_repeated: repeated,
            first_repeated: repeated,
            loss_alone: two_numbers,
            summed: _("These are the sums. Divide them by the number of reviews."),
            the_other_way_round: _("Return the loss first, then the accuracy."),
            **{mean_of_batches(size): of_batches for size in _ROWS_IN_A_BATCH},
            **{partly_counted(*means): left_out for means in _MEANS},
        },
        run=run,
    )
    if any(isinstance(value, dict) for value in given):
        return two_numbers
    if hint and model.asked_to_train:
        return _(
            "Training normalises a row with the moments of its batch. Ask `model.evaluate_logits`, which"
            " takes the moving moments."
        )
    return hint or model.fault()
