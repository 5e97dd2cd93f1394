"""The exercises of this lesson: accumulation and clipping, each as one device runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from lessons.layouts.one_device import Program, on_each

_MOST_ROWS = 4
_SLOPE = np.array([1.0, -2.0, 3.0])


def _gradient_of(x: Array, y: Array) -> Any:
    """Returns the mean gradient of a squared error, of no more rows than a device holds."""
    if len(x) > _MOST_ROWS:
        raise MemoryError(_("These are more rows than one micro-batch has."))
    return 2 * (x @ _SLOPE - y) @ x / len(x)


def _totals(parts: Any, gradient_of: Program) -> tuple[Any, int]:
    return sum(len(x) * gradient_of(x, y) for x, y in parts), sum(len(x) for x, _y in parts)


def _batch_gradient(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    total, rows = _totals(parts, gradient_of)
    return add_up(total) / add_up(rows)


def _each_round(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    totals = [add_up(len(x) * gradient_of(x, y)) for x, y in parts]
    return sum(totals) / add_up(sum(len(x) for x, _y in parts))


def _mean_of_means(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    return add_up(np.mean([gradient_of(x, y) for x, y in parts], axis=0)) / add_up(1)


def _means_over_rows(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    return add_up(sum(gradient_of(x, y) for x, y in parts)) / add_up(sum(len(x) for x, _y in parts))


def _own_rows(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    total, rows = _totals(parts, gradient_of)
    return add_up(total) / rows


def _mean_of_devices(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    total, rows = _totals(parts, gradient_of)
    return add_up(total / rows) / add_up(1)


def _own_only(parts: Any, gradient_of: Program, _add_up: Program) -> Any:
    total, rows = _totals(parts, gradient_of)
    return total / rows


def _not_divided(parts: Any, gradient_of: Program, add_up: Program) -> Any:
    return add_up(_totals(parts, gradient_of)[0])


@exercise("large_trainings-batch", right=_batch_gradient)
def batch(answer: Program) -> str | None:
    """The mean gradient of unequal micro-batches on several devices, exchanged once."""

    def run(program: Program, devices: Any) -> Any:
        found, carried = on_each(program, [(parts, _gradient_of) for parts in devices])
        return found if found is None else [found, carried <= _SLOPE.size + 1]

    def whole(devices: Any) -> Any:
        pairs = [pair for parts in devices for pair in parts]
        total, rows = _totals(pairs, _gradient_of)
        return [[total / rows] * len(devices), True]

    random = np.random.default_rng(0)
    cases = []
    for count, rounds in ((1, 2), (2, 2), (2, 3), (4, 3)):
        devices = [[_drawn(random) for _round in range(rounds)] for _device in range(count)]
        told = _("devices: {count}, micro-batches on each: {rounds}", count=count, rounds=rounds)
        cases.append(Case((devices,), told=told))
    unequal = _(
        "A mean of means counts a row of a small micro-batch for more than one of a large micro-batch."
        " By what do you have to multiply each mean?"
    )
    hints = {
        _each_round: _(
            "The gradient is right, but the devices exchange too much. Add up on the device first, over all"
            " of its micro-batches."
        ),
        _mean_of_means: unequal,
        _mean_of_devices: unequal,
        _means_over_rows: _(
            "You add up means. A mean has been divided by the rows of its micro-batch already."
        ),
        _own_rows: _("The sum has the rows of all devices. How many are these?"),
        _own_only: _("That is the mean over this device's rows. The other devices have rows, too."),
        _not_divided: _("That is a sum over all rows. For a mean, divide by their number."),
    }
    return judge(
        answer,
        whole,
        cases,
        run=run,
        misconceptions={functools.partial(run, program): hint for program, hint in hints.items()},
        advice=_(
            "The check compares a list: what each device returns, and whether `add_up` carries no more than"
            " the gradient and one number."
        ),
    )


def _drawn(random: np.random.Generator) -> tuple[Array, Array]:
    rows = int(random.integers(1, _MOST_ROWS + 1))
    return random.integers(-3, 4, (rows, 3)) * 1.0, random.integers(-3, 4, rows) * 1.0


# Clipping, where some gradients are cut


def _squares(gradients: Any, is_split: Any, split: bool) -> Any:
    return sum(np.sum(each**2) for each, cut in zip(gradients, is_split, strict=True) if cut is split)


def _scaled(gradients: Any, norm: Any, limit: float) -> Any:
    return [min(1, limit / norm) * each for each in gradients]


def _clip_own(gradients: Any, is_split: Any, limit: float, add_up: Program, power: float = 0.5) -> Any:
    squares = add_up(_squares(gradients, is_split, True)) + _squares(gradients, is_split, False)
    return _scaled(gradients, squares**power, limit)


_no_root: Program = functools.partial(_clip_own, power=1.0)


def _own_norm(gradients: Any, _is_split: Any, limit: float, _add_up: Program) -> Any:
    return _scaled(gradients, sum(np.sum(each**2) for each in gradients) ** 0.5, limit)


def _whole_several_times(gradients: Any, _is_split: Any, limit: float, add_up: Program) -> Any:
    return _scaled(gradients, add_up(sum(np.sum(each**2) for each in gradients)) ** 0.5, limit)


def _sum_of_norms(gradients: Any, is_split: Any, limit: float, add_up: Program) -> Any:
    norm = add_up(_squares(gradients, is_split, True) ** 0.5)
    return _scaled(gradients, (norm**2 + _squares(gradients, is_split, False)) ** 0.5, limit)


def _without_the_whole(gradients: Any, is_split: Any, limit: float, add_up: Program) -> Any:
    return _scaled(gradients, add_up(_squares(gradients, is_split, True)) ** 0.5, limit)


def _each_alone(gradients: Any, is_split: Any, limit: float, add_up: Program) -> Any:
    clipped = []
    for each, cut in zip(gradients, is_split, strict=True):
        squares = np.sum(each**2)
        clipped += _scaled([each], (add_up(squares) if cut else squares) ** 0.5, limit)
    return clipped


def _leaves_early(gradients: Any, is_split: Any, limit: float, add_up: Program) -> Any:
    if sum(np.sum(each**2) for each in gradients) <= limit**2:
        return gradients
    return _clip_own(gradients, is_split, limit, add_up)


def _too_much(gradients: Any, is_split: Any, limit: float, add_up: Program) -> Any:
    clipped = _clip_own(gradients, is_split, limit, add_up)
    add_up(gradients[0])
    return clipped


@exercise("large_trainings-clip", right=_clip_own)
def clip(answer: Program) -> str | None:
    """The clipped gradients of one device, of which some are parts."""

    def run(program: Program, count: int, gradients: Sequence[Array], is_split: Any, limit: float) -> Any:
        own = [(_part(gradients, is_split, count, at), is_split, limit) for at in range(count)]
        found, carried = on_each(program, own)
        return found if found is None else [found, carried <= 2]

    def whole(count: int, gradients: Sequence[Array], is_split: Any, limit: float) -> Any:
        clipped = _scaled(gradients, sum(np.sum(each**2) for each in gradients) ** 0.5, limit)
        return [[_part(clipped, is_split, count, at) for at in range(count)], True]

    random = np.random.default_rng(0)
    short = _("This norm is below the limit. Then the gradients stay as they are.")
    early = _(
        "A device can't know from its own part that the norm is below the limit. If it leaves before"
        " `add_up`, the other devices wait for it."
    )
    cases = []
    for count, limit, hint in ((2, 1.0, ""), (4, 2.0, ""), (1, 1.0, ""), (2, 99.0, short), (4, 1.0, "")):
        gradients = [random.integers(1, 5, shape) * 1.0 for shape in ((4, 2), (3,), (8,), (4,))]
        told = _("small gradients, devices along `model`: {count}", count=count)
        cases.append(Case((count, gradients, [True, False, True, True], limit), hint=hint, told=told))
    cases.append(_short_on_the_first())
    hints = {
        _own_norm: _("That is the norm of what this device holds. What about the other parts?"),
        _whole_several_times: _(
            "What isn't split is the same everywhere. Added up, it counts several times."
        ),
        _no_root: _("You divide the limit by a square. The norm is its root."),
        _sum_of_norms: _("Norms don't add up. Their squares do."),
        _without_the_whole: _("The norm belongs to all gradients, also to those that are replicated."),
        _each_alone: _("The global norm is one number for all gradients, and so is the factor."),
        _leaves_early: early,
        _too_much: _("More than two numbers are exchanged. Add up the squares on the device first."),
    }
    return judge(
        answer,
        whole,
        cases,
        run=run,
        misconceptions={functools.partial(run, program): hint for program, hint in hints.items()},
        advice=_(
            "The check compares a list: what each device returns, and whether `add_up` carries no more than"
            " two numbers. Write down the squares of which numbers belong to the norm, and who holds them."
        ),
    )


def _short_on_the_first() -> Case:
    """Gradients that are short on the first of two devices and long on the second; the first is not split."""
    split = np.outer([0.01, 1], np.arange(1.0, 5.0))
    gradients = [split[0, :3], split, split.ravel(), split[:, 0]]
    told = _("small gradients, devices along `model`: {count}", count=2)
    return Case((2, gradients, [False, True, True, True], 2.0), told=told)


def _part(gradients: Sequence[Array], is_split: Any, count: int, at: int) -> list[Array]:
    pairs = zip(gradients, is_split, strict=True)
    return [np.split(each, count)[at] if cut else each for each, cut in pairs]
