"""Replicas of a small model on real devices, and the steps that they may take: to judge a reader's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.real_devices import on_devices
from course_lib.runtime import device_kind

Array = npt.NDArray[Any]
Values = dict[str, Array]
Part = tuple[Array, Array]  # rows and labels
Step = Callable[[list[Any], list[Part], float], Any]
Outcome = dict[str, Any]

# What a device makes of the partial gradients of a variable: it gets all of them, its number, and the parts.
Update = Callable[[list[Any], int, Sequence[Part]], Any]

NAMES = ("hidden_weight", "hidden_bias", "logits_weight", "logits_bias")
LEARNING_RATE = 0.125
SAW_OTHERS = "replicas that saw rows of other parts"
_FEATURES, _HIDDEN, _CLASSES = 3, 4, 2
_SHAPES = ((_FEATURES, _HIDDEN), (_HIDDEN,), (_HIDDEN, _CLASSES), (_CLASSES,))


@dataclass(frozen=True, repr=False)
class Group:
    """What a group of devices begins a step with.

    Attributes:
        values: of a small MLP without normalisation, the same on every device.
        parts: the rows and labels of each device. No two have as many rows, so that a part is known by that.
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
        return _outcome(held, 0)

    return outcome


def after_one_device(group: Group) -> Outcome:
    """Returns for each replica what one device holds after a step on the rows of all parts together."""
    return _outcome([_stepped(group.values, _joined(group.parts))] * len(group.parts), 0)


def after_turns(group: Group) -> Outcome:
    """Returns what replicas hold if each one's gradient changes all before the next one computes its own."""
    values = group.values
    for part in group.parts:
        values = _stepped(values, part)
    return _outcome([values] * len(group.parts), 0)


def taking(update: Update) -> Step:
    """Returns a step of real replicas that makes such an update."""

    def step(replicas: list[Any], parts: list[Part], learning_rate: float) -> None:
        partial = [gradient_on_device(*both) for both in zip(replicas, parts, strict=True)]
        for at, replica in enumerate(replicas):
            for name, variable in replica.trained.items():
                variable.assign_sub(learning_rate * update([one[name] for one in partial], at, parts))

    return step


def taking_turns(replicas: list[Any], parts: list[Part], learning_rate: float) -> None:
    """Lets every replica's gradient change all replicas before the next one computes its own."""
    for replica, part in zip(replicas, parts, strict=True):
        gradients = gradient_on_device(replica, part)
        for changed in replicas:
            for name, variable in changed.trained.items():
                variable.assign_sub(learning_rate * gradients[name])


def on_all_rows(replicas: list[Any], parts: list[Part], learning_rate: float) -> None:
    """Lets every replica compute the gradient of the whole batch."""
    for replica in replicas:
        gradients = gradient_on_device(replica, _joined(parts))
        for name, variable in replica.trained.items():
            variable.assign_sub(learning_rate * gradients[name])


def gradient_on_device(replica: Any, part: Part) -> dict[str, Any]:
    """Returns the gradient of the summed loss of a part, as TensorFlow computes it."""
    with on_devices() as (tf, _dtensor):
        with tf.GradientTape() as tape:
            logits = replica(tf.constant(part[0]))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part[1], logits=logits)
        gradients: dict[str, Any] = tape.gradient(losses, replica.trained)
    return gradients


def run(step: Step, group: Group) -> Outcome:
    """Returns what replicas, each on a device, hold after a step, and how many saw rows of other parts."""
    with on_devices() as (tf, _dtensor):
        devices = tf.config.list_logical_devices(device_kind())
        replicas = []
        for at, (rows, _labels) in enumerate(group.parts):
            with tf.device(devices[at % len(devices)].name):
                replicas.append(_replica(tf, group.values, len(rows)))
        step(replicas, list(group.parts), LEARNING_RATE)
        held = [
            {name: variable.numpy() for name, variable in replica.trained.items()} for replica in replicas
        ]
    return _outcome(held, sum(replica.saw_others for replica in replicas))


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


def _outcome(held: Sequence[Values], num_seeing_others: int) -> Outcome:
    values = {f"replicas[{at}].{name}": array for at, each in enumerate(held) for name, array in each.items()}
    return {**values, SAW_OTHERS: num_seeing_others}


def _stepped(values: Values, part: Part) -> Values:
    found = gradient(values, part)
    return {name: values[name] - LEARNING_RATE * found[name] for name in NAMES}


def _joined(parts: Sequence[Part]) -> Part:
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, labels


def _replica(tf: Any, values: Values, num_rows: int) -> Any:
    class Replica(tf.Module):  # type: ignore[misc]
        """The lesson's model without normalisation; it notices rows that are not its own by their number."""

        def __init__(self) -> None:
            super().__init__()
            self.saw_others = False
            for name in NAMES:
                setattr(self, name, tf.Variable(values[name], name=name))

        @property
        def trained(self) -> dict[str, Any]:
            return {name: getattr(self, name) for name in NAMES}

        def __call__(self, inputs: Any) -> Any:
            self.saw_others |= inputs.shape[0] != num_rows
            return self._logits(self._hidden(inputs))

        def _hidden(self, inputs: Any) -> Any:
            return tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)

        def _logits(self, hidden: Any) -> Any:
            return tf.matmul(hidden, self.logits_weight) + self.logits_bias

    return Replica()
