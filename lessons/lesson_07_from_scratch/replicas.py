"""A group of replicas of a small model, and what they hold after steps of many kinds, by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = dict[str, Array]
Part = tuple[Array, Array]  # rows and labels
Outcome = dict[str, Any]  # the values of the variables, by replica and name

# What a device makes of the partial gradients of a variable: it gets all of them, its number, and the parts.
Update = Callable[[list[Any], int, Sequence[Part]], Any]

NAMES = ("hidden_weight", "hidden_bias", "logits_weight", "logits_bias")
LEARNING_RATE = 0.3  # not the inverse of a number of parts or rows
_FEATURES, _HIDDEN, _CLASSES = 3, 4, 2
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))


@dataclass(frozen=True, repr=False)
class Group:
    """What a group of devices begins a step with.

    Attributes:
        values: of a small MLP without normalisation, the same on every device.
        parts: the rows and labels of each device. No row is in two of them.
    """

    values: Values
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"{len(self.parts)} replicas, rows {[len(labels) for _rows, labels in self.parts]}"


def draw_group(random: np.random.Generator, sizes: Sequence[int]) -> Group:
    """Returns a group of which each device has a part of the given size."""
    values = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in zip(NAMES, _SHAPES, strict=True)
    }
    parts = [
        (random.standard_normal((size, _FEATURES)).astype(np.float32), random.integers(0, _CLASSES, size))
        for size in sizes
    ]
    return Group(values, tuple(parts))


def after(update: Update) -> Callable[[Group], Outcome]:
    """Returns a function that computes, in float64 on the host, what replicas hold after such an update."""

    def outcome(group: Group) -> Outcome:
        partial = [gradient(group.values, part) for part in group.parts]
        held = [
            {
                name: group.values[name]
                - LEARNING_RATE * update([one[name] for one in partial], at, group.parts)
                for name in NAMES
            }
            for at in range(len(group.parts))
        ]
        return named(held)

    return outcome


def after_one_device(group: Group) -> Outcome:
    """Returns for each replica what one device holds after a step on the rows of all parts together."""
    return named([_stepped(group.values, joined(group.parts))] * len(group.parts))


def after_turns(group: Group) -> Outcome:
    """Returns what replicas hold if each one's gradient changes all before the next one computes its own."""
    values = group.values
    for part in group.parts:
        values = _stepped(values, part)
    return named([values] * len(group.parts))


def gradient(values: Values, part: Part) -> Values:
    """Returns the gradient of the summed cross entropy of a part, by hand and in float64."""
    rows, labels = part
    wide = {name: value.astype(np.float64) for name, value in values.items()}
    before = rows @ wide["hidden_weight"] + wide["hidden_bias"]
    hidden = np.maximum(before, 0)
    logits = hidden @ wide["logits_weight"] + wide["logits_bias"]
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    to_logits = chances / chances.sum(axis=1, keepdims=True) - np.eye(logits.shape[1])[labels]
    to_before = to_logits @ wide["logits_weight"].T * (before > 0)
    found = rows.T @ to_before, to_before.sum(axis=0), hidden.T @ to_logits, to_logits.sum(axis=0)
    return dict(zip(NAMES, found, strict=True))


def named(held: Sequence[Values]) -> Outcome:
    """Returns what replicas hold by replica and name, from what each holds by name."""
    return {f"replicas[{at}].{name}": array for at, each in enumerate(held) for name, array in each.items()}


def _stepped(values: Values, part: Part) -> Values:
    found = gradient(values, part)
    return {name: values[name] - LEARNING_RATE * found[name] for name in NAMES}


def joined(parts: Sequence[Part]) -> Part:
    """Returns the rows and labels of all parts in one."""
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, labels
