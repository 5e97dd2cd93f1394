"""The exercises of this lesson: the update of one device under ZeRO-1, and which axis can take `batch`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array, plain
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED
from lessons.layouts.zero_and_fsdp.one_device import (
    Collective,
    all_gather,
    momentum,
    reduce_scatter,
    running,
)

Program = Callable[..., Any]

# An update, device by device


class _Waits(Exception):  # noqa: N818 - not an error: a device has come to a collective
    def __init__(self, gathers: bool, array: Any) -> None:
        self.gathers, self.array = gathers, np.asarray(plain(array), np.float64)


def _on_each(program: Program, weight: Array, velocity: Array, gradients: Array) -> list[Any] | None:
    """Returns what each device returns, or None if one of them returns nothing.

    All start again after each collective, with the results of those before it.
    """
    devices = len(gradients)
    known: list[list[Array]] = []
    carried = {False: 0, True: 0}  # numbers added up, and numbers gathered
    for _round in range(40):
        results, waiting = [], []
        for device in range(devices):
            done = iter([each[device] for each in known])
            own = np.split(velocity, devices)[device].copy()
            given = (weight.copy(), own, gradients[device].copy(), device)
            try:
                with running(_until_known(done)):
                    results.append(program(*given))
            except _Waits as wait:
                waiting.append(wait)
        if not waiting:
            return None if any(each is None for each in results) else results
        arrays = [each.array for each in waiting]
        if results or len({(each.gathers, each.array.shape) for each in waiting}) > 1:
            return []
        gathers = waiting[0].gathers
        carried[gathers] += arrays[0].size * (devices if gathers else 1)
        if carried[gathers] > weight.size:  # buckets may share this between them
            raise ValueError(
                _(
                    "Your gathers return more numbers than the new weight has. Nothing else has to be"
                    " gathered: each device keeps its own rows of the gradient and of the velocity."
                )
                if gathers
                else _("Your reduce-scatters add up more numbers than the gradient has.")
            )
        if gathers:
            known.append([np.concatenate(arrays)] * devices)
        else:
            known.append(np.array_split(np.sum(arrays, axis=0), devices))
    return []


def _until_known(done: Any) -> Collective:
    """Returns collectives that give known results one after the other, then wait."""

    def collective(gathers: bool, array: Any) -> Array:
        for result in done:
            own: Array = result.astype(np.float32)
            return own
        raise _Waits(gathers, array)

    return collective


def _own_rows(array: Any, velocity: Any, device: int) -> Any:
    return array[device * len(velocity) : (device + 1) * len(velocity)]


def _own_update(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    return momentum(_own_rows(weight, velocity, device), velocity, gradient)


def _zero_1(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    rows, velocity = _own_update(weight, velocity, reduce_scatter(gradient), device)
    return all_gather(rows), velocity


def _not_added_up(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    rows, velocity = _own_update(weight, velocity, _own_rows(gradient, velocity, device), device)
    return all_gather(rows), velocity


def _not_gathered(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    return _own_update(weight, velocity, reduce_scatter(gradient), device)


def _written(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    rows, velocity = _not_gathered(weight, velocity, gradient, device)
    weight[device * len(rows) : (device + 1) * len(rows)] = rows
    return weight, velocity


def _first_rows(weight: Any, velocity: Any, gradient: Any, _device: int) -> Any:
    return _zero_1(weight, velocity, gradient, 0)


def _mean(weight: Any, velocity: Any, gradient: Any, device: int) -> Any:
    devices = len(weight) // len(velocity)
    rows, velocity = _own_update(weight, velocity, reduce_scatter(gradient) / devices, device)
    return all_gather(rows), velocity


@exercise("zero_and_fsdp-update", right=_zero_1)
def zero_1(answer: Program) -> str | None:
    """The update of one device, with a reduce-scatter and an all-gather."""

    def whole(weight: Array, velocity: Array, gradients: Array) -> list[Any]:
        new_weight, new_velocity = momentum(weight, velocity, gradients.sum(0))
        return [(new_weight, own) for own in np.split(new_velocity, len(gradients))]

    random = np.random.default_rng(0)
    cases = []
    for devices in (1, 2, 4, 2, 4):
        weight, velocity, *gradients = random.integers(-3, 4, (2 + devices, 8, 3)).astype(np.float32)
        told = _("small arrays, devices: {count}", count=devices)
        cases.append(Case((weight, velocity, np.array(gradients)), told=told))
    hints = {
        _not_added_up: _(
            "You used the rows of this device's own gradient. The other devices have other examples, and"
            " these rows of their gradients have to be added up, too."
        ),
        _not_gathered: _(
            "This device has only its own rows of the new weight. What does the next forward pass need?"
        ),
        _written: _("The weight has this device's new rows alone. The others are on the other devices."),
        _first_rows: _("Device 0 updates the first rows of the weight. Which ones does this device update?"),
        _mean: _("Add up the gradients, and don't divide: the loss was already divided by the whole batch."),
    }
    return judge(
        answer,
        whole,
        cases,
        run=_on_each,
        misconceptions={functools.partial(_on_each, program): hint for program, hint in hints.items()},
        advice=_(
            "First the rows of the summed gradient, then the update of these rows, then the whole new weight."
            " Return the weight and this device's rows of the velocity."
        ),
    )


# Which axis can take `batch`

Entries = Sequence[str]


def _split(entries: Entries, shape: Sequence[int], devices: int) -> list[str]:
    free = [axis for axis, entry in enumerate(entries) if entry == UNSHARDED]
    return _at(entries, [axis for axis in free if shape[axis] % devices == 0][:1])


def _at(entries: Entries, axes: Sequence[int]) -> list[str]:
    return ["batch" if axis in axes else entry for axis, entry in enumerate(entries)]


def _unequal(entries: Entries, _shape: Sequence[int], _devices: int) -> list[str]:
    return _at(entries, [axis for axis, entry in enumerate(entries) if entry == UNSHARDED][:1])


def _taken(entries: Entries, shape: Sequence[int], devices: int) -> list[str]:
    return _at(entries, [axis for axis, size in enumerate(shape) if size % devices == 0][:1])


def _all(entries: Entries, shape: Sequence[int], devices: int) -> list[str]:
    return _at(
        entries,
        [axis for axis, entry in enumerate(entries) if entry == UNSHARDED and shape[axis] % devices == 0],
    )


def _first_axis(entries: Entries, shape: Sequence[int], devices: int) -> list[str]:
    return _at(entries, [0] if entries[0] == UNSHARDED and shape[0] % devices == 0 else [])


def _last(entries: Entries, shape: Sequence[int], devices: int) -> list[str]:
    return _split(entries[::-1], shape[::-1], devices)[::-1]


def _tensor(random: np.random.Generator) -> tuple[list[str], tuple[int, ...], int]:
    """Draws a layout's entries, a shape and a number of devices along `batch`."""
    axes, devices = int(random.integers(1, 4)), int(random.choice([2, 3, 4, 8]))
    entries = [UNSHARDED] * axes
    if random.random() < 0.6:
        entries[random.integers(axes)] = str(random.choice(["model", "pipeline"]))
    shape = tuple(int(size) for size in random.choice([2, 6, 10, 24, 48], axes))
    return entries, shape, devices


@exercise("zero_and_fsdp-axis", right=_split)
def axis(answer: Callable[..., Any]) -> str | None:
    """The entries of a layout, with `batch` on the first axis that can take it."""
    return judge(
        answer,
        _split,
        drawn(_tensor),
        misconceptions={
            _unequal: _("An axis can be split only into equal parts. Where it can't, try the next one."),
            _taken: _("An axis that a mesh dimension splits has its entry already. Leave it as it is."),
            _all: _("A mesh dimension can split only one axis of a tensor. Take the first one that fits."),
            _first_axis: _("If the first axis can't take `batch`, another one may."),
            _last: _("Where more than one axis can take `batch`, take the first one."),
        },
        advice=_("Which axes are unsharded, and which of them can be split into so many equal parts?"),
    )
