"""Exercise 03-step: the training step of a group of devices, written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises import replicas
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _, ngettext
from lessons.lesson_03_one_step import replicas_on_devices


def _weighted_by_rows(partial: list[Any], parts: Sequence[replicas.Part]) -> Any:
    rows = [len(labels) for _rows, labels in parts]
    return sum(count / sum(rows) * each for count, each in zip(rows, partial, strict=True))


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
    lambda partial, at, parts: partial[-1],
    lambda partial, at, parts: len(partial) * sum(partial),
    lambda partial, at, parts: sum(partial) / replicas.LEARNING_RATE,
    lambda partial, at, parts: _weighted_by_rows(partial, parts),
)
_SUM, *_MISTAKES = _UPDATES


def _by_averaging(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    """Lets every replica step alone, eight times as far where there are eight, and then takes the mean."""
    replicas_on_devices.taking(lambda partial, at, parts: partial[at] * len(parts))(
        models, parts, learning_rate
    )
    for name in replicas.NAMES:
        mean = np.mean([model.trained[name].numpy() for model in models], axis=0)
        for model in models:
            model.trained[name].assign(mean)
    return models


def _in_micro_batches(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    """Lets every replica add the gradients of its own rows one by one."""

    def of_part(model: Any, part: replicas.Part) -> dict[str, Any]:
        each = [
            replicas_on_devices.gradient_on_device(model, (row[None], label[None]))
            for row, label in zip(*part, strict=True)
        ]
        return {name: sum(gradients[name] for gradients in each) for name in replicas.NAMES}

    partial = [of_part(*both) for both in zip(models, parts, strict=True)]
    for model, name in itertools.product(models, replicas.NAMES):
        model.trained[name].assign_sub(learning_rate * sum(each[name] for each in partial))
    return models


def _recomputing(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    """Computes the gradients anew for every variable, when those before it have changed."""
    for name in replicas.NAMES:
        partial = [replicas_on_devices.gradient_on_device(*both) for both in zip(models, parts, strict=True)]
        for model in models:
            model.trained[name].assign_sub(learning_rate * sum(each[name] for each in partial))
    return models


def _weights_only(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    partial = [replicas_on_devices.gradient_on_device(*both) for both in zip(models, parts, strict=True)]
    for model, name in itertools.product(models, ("hidden_weight", "logits_weight")):
        model.trained[name].assign_sub(learning_rate * sum(each[name] for each in partial))
    return models


def _first_on_all_rows(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    """Lets the first replica compute the gradient of the whole batch and the others take it."""
    replicas_on_devices.on_all_rows(models[:1], parts, learning_rate)
    for model in models[1:]:
        for name, variable in model.trained.items():
            variable.assign(models[0].trained[name].numpy())
    return models


def _outside_the_replicas(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    """Computes the gradient of the whole batch outside the replicas, as a model of its own would."""
    values = {name: variable.numpy() for name, variable in models[0].trained.items()}
    found = replicas.gradient(values, replicas.joined(parts))
    for model, name in itertools.product(models, replicas.NAMES):
        model.trained[name].assign_sub(learning_rate * found[name].astype(np.float32))
    return models


def _replacing_variables(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    partial = [replicas_on_devices.gradient_on_device(*both) for both in zip(models, parts, strict=True)]
    for model, name in itertools.product(models, replicas.NAMES):
        total = sum(each[name] for each in partial)
        setattr(model, name, model.trained[name] - learning_rate * total)
    return models


def _returning_nothing(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> None:
    replicas_on_devices.taking(_SUM)(models, parts, learning_rate)


def _failing(models: list[Any], parts: list[replicas.Part], learning_rate: float) -> list[Any]:
    raise ValueError(f"cannot use {models} and {object()}")


@exercise(
    "03-step",
    right=replicas_on_devices.taking(_SUM),
    also=[
        _by_averaging,
        _in_micro_batches,
        replicas_on_devices.taking(
            lambda partial, at, parts: np.sum([each.numpy() for each in partial], axis=0)
        ),
    ],
    wrong=[
        *zip(
            map(replicas_on_devices.taking, _MISTAKES),
            (
                "drift apart",
                "mean of the partial gradients",
                "mean of the losses",
                "first replica only",
                "wrong way",
                "no replica has changed",
                "only: the first",
                "only: the last",
                "added more than once",
                "learning rate is not used",
                "weighted by its rows",
            ),
            strict=True,
        ),
        (replicas_on_devices.taking_turns, "before any replica"),
        (_recomputing, "computed anew"),
        (_weights_only, "have not changed: `hidden_bias`, `logits_bias`."),
        (_returning_nothing, "`return replicas`"),
        (_replacing_variables, "in the place of the variables. Write with `assign_sub`"),
        (_failing, "ValueError: cannot use [replicas[0], replicas[1], replicas[2]] and <object object>`"),
        (replicas_on_devices.on_all_rows, "8 replicas saw rows of other parts"),
        (_first_on_all_rows, "1 replica saw rows of other parts"),
        (_outside_the_replicas, "8 replicas computed nothing"),
        (
            replicas_on_devices.taking(lambda partial, at, parts: 2 * sum(partial)),
            "with `train_step` on one model",
        ),
        (0.5, "function"),
    ],
    on_devices=True,
)
def step(answer: replicas_on_devices.Step) -> str | None:
    """The step of a group of devices, held against one device."""
    hints = (
        _("Each replica took the gradient of its own part, so they drift apart. Add the gradients first."),
        _("This is the mean of the partial gradients. `train_step` minimises a sum: add them."),
        _("This is the step for the mean of the losses. `train_step` minimises their sum."),
        _("This changes the first replica only. An all-reduce gives the total to everyone."),
        _("The replicas go the wrong way: a step subtracts the gradient."),
        _("After your step no replica has changed. Write with `assign_sub`."),
        _("All replicas took the gradient of one part only: the first. Add those of all parts."),
        _("All replicas took the gradient of one part only: the last. Add those of all parts."),
        _("The sum of the gradients is added more than once: once for each device. Subtract it once."),
        _("The learning rate is not used. Multiply the sum of the gradients by it."),
        _("Here each part is weighted by its rows. Its gradient is a sum over them already: just add."),
    )
    mistakes: dict[Callable[..., Any], str] = {
        replicas.after(mistake): hint for mistake, hint in zip(_MISTAKES, hints, strict=True)
    }
    mistakes[replicas.after_turns] = _(
        "A replica changed before all gradients were there. Compute every partial gradient before any replica"
        " changes."
    )
    mistakes[replicas.after_recomputing] = _(
        "The gradients are computed anew after a variable has changed. Compute all of them first, once."
    )
    for count in range(1, len(replicas.NAMES)):
        for names in itertools.combinations(replicas.NAMES, count):
            mistakes[replicas.after_changing(names)] = _unchanged(names)
    answer = getattr(answer, "python_function", answer)  # a `tf.function` would be traced with all replicas
    random = np.random.default_rng(0)
    groups = {
        (2, 5, 3): _("3 replicas with 2, 5 and 3 rows"),
        (3, 1, 4, 2, 6, 5, 8, 7): _("8 replicas with 3, 1, 4, 2, 6, 5, 8 and 7 rows"),
    }
    cases = [Case((replicas.draw_group(random, sizes),), told=told) for sizes, told in groups.items()]
    conducts: list[replicas_on_devices.Conduct] = []

    def run(step: replicas_on_devices.Step, group: replicas.Group) -> replicas.Outcome:
        outcome, conduct = replicas_on_devices.run(step, group)
        conducts.append(conduct)
        return outcome

    advice = _("Compare with `train_step` on one model with all rows.")
    hint = judge(answer, replicas.after_one_device, cases, misconceptions=mistakes, run=run, advice=advice)
    num_seeing_others = max((conduct.num_seeing_others for conduct in conducts), default=0)
    if num_seeing_others:
        return _seen(num_seeing_others)
    num_idle = max((conduct.num_idle for conduct in conducts), default=0)
    if hint is None and num_idle:
        return _idle(num_idle)
    if not all(conduct.keeps_variables for conduct in conducts):
        return _("Your step puts other values in the place of the variables. Write with `assign_sub`.")
    if hint is None and not all(conduct.returns_replicas for conduct in conducts):
        return _("The replicas hold the right values. Now return them: `return replicas`.")
    return hint


def _unchanged(changed: Sequence[str]) -> str:
    names = _(", ").join(f"`{name}`" for name in replicas.NAMES if name not in changed)
    return _("These variables have not changed: {names}. A step changes all of them.", names=names)


def _idle(count: int) -> str:
    return ngettext(
        "{count} replica computed nothing. Each takes the gradient of its own part.",
        "{count} replicas computed nothing. Each takes the gradient of its own part.",
        count,
    )


def _seen(count: int) -> str:
    return ngettext(
        "{count} replica saw rows of other parts. Each may see its own only.",
        "{count} replicas saw rows of other parts. Each may see its own only.",
        count,
    )
