"""The exercises and the predictions of lesson 04."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise, same
from course_lib.exercises.evaluation import (
    Watched,
    called,
    divided_by_padded,
    each_row,
    evaluate,
    evaluated,
    mean_of_devices,
    on_every_device,
    padding_counted,
    rest_dropped,
    small_model,
    some_reviews,
    some_reviews_and_a_rest,
    summed,
    the_other_way_round,
)
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _

Array = npt.NDArray[Any]


@exercise(
    "04-learning-rate",
    right=0.64,
    wrong=[
        (0.01, "64 times smaller"),
        (0.01 / 64, "wrong way"),
        (0.08, "counts the devices"),
        (0.00125, "counts the devices"),
        (64, "by how much"),
        (1.0, "the gradient of the mean"),
    ],
)
def learning_rate(answer: float) -> str | None:
    """The learning rate on the mean that equals 0.01 on the sum of 64."""
    devices = _("That counts the devices. How many losses does the sum add up?")
    hints = {
        0.01: _("With the same rate every update is 64 times smaller: the mean is the sum divided by 64."),
        0.01 / 64: _(
            "That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger."
        ),
        0.08: devices,
        0.01 / 8: devices,
        64: _("That is by how much the rate changes. What is the rate then?"),
    }
    for wrong, hint in hints.items():
        if same(answer, wrong):
            return hint
    if not same(answer, 0.64):
        return _("Compare the gradient of the sum with the gradient of the mean over 64 reviews.")
    return None


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
            _moving_once: _("Update with every value, not with the last one alone."),
        },
    )


def _with_model(function: Callable[[Array, Array], object]) -> Callable[..., object]:
    return lambda model, features, labels: function(features, labels)


@exercise(
    "04-evaluate",
    right=evaluate,
    also=[lambda model, features, labels: np.array(evaluate(model, features, labels))],
    wrong=[
        (_with_model(padding_counted), "counted like reviews"),
        (_with_model(divided_by_padded), "number of reviews"),
        (_with_model(rest_dropped), "every review"),
        (_with_model(mean_of_devices), "mean of the devices' means"),
        (_with_model(summed), "sums"),
        (_with_model(the_other_way_round), "loss first"),
        (_with_model(evaluated), "never asked"),
        (on_every_device, "every device"),
        (lambda model, features, labels: evaluate(model, features[8:], labels[8:]), "by hand"),
        (lambda model, features, labels: None, "return"),
        (each_row, "divide by 8"),
        ((0.5, 0.5), "function"),
    ],
    on_devices=True,
)
def evaluation(answer: Callable[..., Any]) -> str | None:
    """The mean loss and the accuracy over reviews whose number does not divide by 8."""
    model = Watched(small_model())
    features, labels = some_reviews(np.random.default_rng(2), 16)
    hint = judge(
        answer,
        evaluated,
        [
            *drawn(some_reviews_and_a_rest, count=5),
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
            summed: _("These are the sums. Divide them by the number of reviews."),
            the_other_way_round: _("Return the loss first, then the accuracy."),
        },
        run=lambda function, *inputs: called(function, model, *inputs),
    )
    return hint or model.fault()


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
        (_all_rows_saved, "take off that"),
        (_share_as_saving, "one part in"),
        (_devices_less_one, "divided among"),
        (_fixed_on_each, "once"),
        (_wrong_sign, "below 0"),
        (_speedup_of_one_row, "number of rows"),
        (lambda fixed, per_row, devices: int(_break_even(fixed, per_row, devices)), "by hand"),
        (lambda fixed, per_row, devices: None, "return"),
        (lambda fixed, per_row: fixed / per_row, "positional argument"),
        (64, "function"),
    ],
)
def break_even(answer: Callable[..., Any]) -> str | None:
    """The number of rows at which several devices are as fast as one."""
    return judge(
        answer,
        _break_even,
        drawn(_costs),
        misconceptions={
            _without_own_share: _(
                "This forgets that each of the devices still computes its share of the rows."
            ),
            _all_rows_saved: _(
                "Each row takes `per_row` on one device. What do several devices take off that?"
            ),
            _share_as_saving: _(
                "Several devices save more than one part in `devices`: they save all the others."
            ),
            _devices_less_one: _("The rows are divided among all devices: one part in `devices` stays."),
            _fixed_on_each: _("The devices spend the fixed time side by side: it counts once."),
            _wrong_sign: _("A number of rows is not below 0. Which side of the equation is larger?"),
            _speedup_of_one_row: _("That is the speed-up with one row. Asked for is a number of rows."),
        },
    )


@prediction("04-best-of-hundred", right=0.62)
def best_of_hundred() -> Question:
    """What the best of a hundred guessing models shows on the reviews by which it was chosen."""
    return Question(
        _(
            "Each of the hundred models is right for half of all reviews in the long run. Which"
            " accuracy does the best one show on the 100 reviews?"
        ),
        [
            Option(
                0.5,
                _(
                    "That is the mean of the hundred, and what to expect of the best one on other reviews."
                    " But the best was chosen for its luck on these."
                ),
            ),
            Option(
                0.53, _("One model alone is off by about 0.05. The luckiest of a hundred is off by far more.")
            ),
            Option(
                0.62,
                _(
                    "One model's accuracy is off by about 0.05, and the luckiest of a hundred by"
                    " more than twice"
                    " that. It has learnt nothing."
                ),
            ),
            Option(
                0.8,
                _("That would be six times what chance is usually off by: a hundred tries do not reach it."),
            ),
            Option(1.0, _("A hundred right guesses in a row: a hundred tries are far too few for that.")),
        ],
    )


@prediction("04-close", right=100)
def close() -> Question:
    """The step at which a run stands that was closed after 100 records."""
    return Question(
        _("`close` left a checkpoint. After which step does the model in it stand?"),
        [
            Option(
                96,
                _(
                    "Three calls of 32 steps. But the run does not throw away the four steps whose records"
                    " you took: it repeats them from the state before the fourth call."
                ),
            ),
            Option(
                100,
                _(
                    "The run keeps the state before each call. `close` goes back to step 96 and repeats the"
                    " four steps whose records you took."
                ),
            ),
            Option(
                110,
                _(
                    "That is how far the fourth call had gone: to the end of the epoch. A checkpoint there would"
                    " skip ten steps that nobody has a record of, so `close` takes them back."
                ),
            ),
            Option(
                128,
                _(
                    "Four calls of 32 steps. But an epoch has 110, so the fourth call ended there; and `close`"
                    " takes back the steps that nobody has a record of."
                ),
            ),
        ],
        field=True,
        otherwise=_("You took 100 records, one a step. What is there to do with steps beyond them?"),
    )


@prediction("04-resume", right=0.0)
def resume() -> Question:
    """How far the weights of a resumed run are from those of an undisturbed one."""
    return Question(
        _(
            "What is the largest difference between a weight of the resumed run and the same"
            " weight of the undisturbed run?"
        ),
        [
            Option(
                0.0,
                _(
                    "The same values, the same reviews in the same order, the same arithmetic on"
                    " the same machine:"
                    " the same bits."
                ),
                label=_("0, to the last bit"),
            ),
            Option(
                1e-6,
                _(
                    "That would be rounding. But a checkpoint keeps every bit, and the same"
                    " processor adds in the"
                    " same order again. Rounding would differ on another machine or under another layout."
                ),
                label=_("about 1e-6: rounding"),
            ),
            Option(
                1e-2,
                _(
                    "So it would be if the remaining reviews came in another order. Their order"
                    " follows from the"
                    " seed, the epoch and the step, and the checkpoint holds those."
                ),
                label=_("about 0.01: other batches"),
            ),
            Option(
                1.0,
                _("So it would be if the run began again, or from other initial values."),
                label=_("about 1: another training"),
            ),
        ],
    )


@prediction("04-other-batch", right="refused")
def other_batch() -> Question:
    """What happens to a run that is resumed with another batch size."""
    return Question(
        _("The checkpoint comes from batches of 64. What does `train` do with `batch_size=128`?"),
        [
            Option(
                "counts",
                _(
                    "In batches of 128 an epoch has 55 steps, so that step 101 lies in the second one: the rest of"
                    " the first would be left out in silence."
                ),
                label=_("It goes on with step 101, in batches of 128"),
            ),
            Option(
                "converts",
                _(
                    "100 steps of 64 reviews are 50 of 128. But another batch size is another training: it"
                    " would not end as either run would have ended. `train` does not guess."
                ),
                label=_("It goes on with step 51, in batches of 128"),
            ),
            Option(
                "keeps",
                _("Then the batch size that you wrote would be ignored in silence."),
                label=_("It goes on with step 101, in batches of 64"),
            ),
            Option(
                "refused",
                _(
                    "A checkpoint names the settings that it was trained with, and only the same"
                    " ones go on from it."
                ),
                label=_("It refuses"),
            ),
            Option(
                "afresh",
                _("That would overwrite, checkpoint by checkpoint, the run that you wanted to go on with."),
                label=_("It begins again with step 1"),
            ),
        ],
    )


@prediction("04-step-64", right="one")
def step_64() -> Question:
    """Who is faster with 64 reviews in a step."""
    return Question(
        _(
            "A step with 64 reviews: which is faster, one device that computes all of them, or"
            " eight that compute 8 each?"
        ),
        [
            Option(
                "one",
                _(
                    "64 reviews are little work. Eight devices spend their time on starting eight"
                    " computations"
                    " and on the all-reduces, which one device does not need."
                ),
                label=_("one device"),
            ),
            Option(
                "equal",
                _(
                    "They would be equal if the computation took all the time. Here most of it"
                    " goes into starting"
                    " eight computations and into the all-reduces."
                ),
                label=_("about equal"),
            ),
            Option(
                "eight",
                _(
                    "Each of the eight computes less, but 64 reviews are little work in any case."
                    " What is added,"
                    " the all-reduces and eight computations to start, takes longer than what is saved."
                ),
                label=_("eight devices"),
            ),
        ],
    )


@prediction("04-seeds", right=(0.51, 0.69))
def seeds() -> Question:
    """How far three seeds lie apart on the real reviews."""
    return Question(
        _(
            "Three runs on the real reviews, with raw tf-idf rows and He's initial values. They"
            " differ only in"
            " the seed. Between which test accuracies do they end?"
        ),
        [
            Option(
                (0.68, 0.69), _("So close together that one run would do. With these settings it would not.")
            ),
            Option((0.6, 0.65), _("A plausible spread, but it is wider: the best is 0.18 above the worst.")),
            Option(
                (0.51, 0.69),
                _("One of them guesses, another does not. Whoever tries one seed may report either."),
            ),
            Option((0.85, 0.86), _("That is how rows of unit length end, with the same initial values.")),
        ],
    )
