"""Exercise 03-step: the training step of a group of devices, written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises import replicas
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _

# What a device may make of the partial gradients of a variable; the first is right.
_UPDATES: tuple[replicas.Update, ...] = (
    lambda partial, at, parts: sum(partial),
    lambda partial, at, parts: partial[at],
    lambda partial, at, parts: sum(partial) / len(partial),
    lambda partial, at, parts: sum(partial) / sum(len(labels) for _rows, labels in parts),
    lambda partial, at, parts: sum(partial) * (at == 0),
    lambda partial, at, parts: -sum(partial),
    lambda partial, at, parts: partial[0] * 0.0,
    lambda partial, at, parts: partial[0],
)
_SUM, *_STEP_MISTAKES = _UPDATES


def _in_turn(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> None:
    """Lets every replica's gradient change all replicas before the next one computes its own."""
    for model, part in zip(models, parts, strict=True):
        gradient = replicas.gradient_on_device(model, part)
        for changed in models:
            for name, variable in changed.trained.items():
                variable.assign_sub(learning_rate * gradient[name])


def _on_all_rows(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> None:
    """Lets every replica compute the gradient of the whole batch."""
    whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    for model in models:
        gradient = replicas.gradient_on_device(model, whole)  # type: ignore[arg-type]
        for name, variable in model.trained.items():
            variable.assign_sub(learning_rate * gradient[name])


@exercise(
    "03-step",
    right=replicas.taken(_SUM),
    wrong=[
        *zip(
            map(replicas.taken, _STEP_MISTAKES),
            (
                "drift apart",
                "mean of the partial gradients",
                "mean of the losses",
                "first replica only",
                "wrong way",
                "no replica has changed",
                "one part only",
            ),
            strict=True,
        ),
        (_in_turn, "before any replica changes"),
        (_on_all_rows, "rows of other parts"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def step(answer: replicas.Step) -> str | None:
    """The step of a group of devices, held against one device."""
    hints = (
        _("Each replica took the gradient of its own part, so they drift apart. Add the gradients first."),
        _("This is the mean of the partial gradients. `train_step` minimises a sum: add them."),
        _("This is the step for the mean of the losses. `train_step` minimises their sum."),
        _("This changes the first replica only. An all-reduce gives the total to everyone."),
        _("The replicas go the wrong way: a step subtracts the gradient."),
        _("After your step no replica has changed. Write with `assign_sub`."),
        _("All replicas took the gradient of one part only: the first. Add those of all parts."),
    )
    mistakes: dict[Callable[..., Any], str] = {
        replicas.predicted(mistake): hint for mistake, hint in zip(_STEP_MISTAKES, hints, strict=True)
    }
    mistakes[replicas.predicted(_SUM, seeing_others=True)] = _(
        "The values are right, but every replica saw rows of other parts, and did all the work."
    )
    mistakes[_predicted_in_turn] = _(
        "A replica changed before all gradients were there. Compute every partial gradient before any replica"
        " changes."
    )
    random = np.random.default_rng(0)
    cases = [Case(replicas.draw_step(random, sizes)) for sizes in ((2, 5, 3), (3, 1, 4, 2, 6, 5, 8, 7))]
    return judge(answer, replicas.one_device, cases, misconceptions=mistakes, run=replicas.run)


def _predicted_in_turn(
    values: replicas.Values, parts: list[replicas.Part], learning_rate: float
) -> tuple[replicas.Held, int]:
    now = values
    for part in parts:
        (held,), _others = replicas.one_device(now, [part], learning_rate)
        now = dict(zip(replicas.NAMES, held, strict=True))
    return (held,) * len(parts), 0
