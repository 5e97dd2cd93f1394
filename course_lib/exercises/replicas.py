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


@dataclass(frozen=True)
class Conduct:
    """What a step did besides changing variables.

    Attributes:
        num_seeing_others: how many replicas saw rows of other parts.
        keeps_variables: whether each replica still has the variables that it had.
        returns_replicas: whether it returned the replicas that it got.
    """

    num_seeing_others: int
    keeps_variables: bool
    returns_replicas: bool


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
        return _outcome(held)

    return outcome


def after_changing(names: Sequence[str]) -> Callable[[Group], Outcome]:
    """Returns a function that computes what replicas hold if a step changes these variables only."""

    def outcome(group: Group) -> Outcome:
        stepped = _stepped(group.values, _joined(group.parts))
        held = {name: (stepped if name in names else group.values)[name] for name in NAMES}
        return _outcome([held] * len(group.parts))

    return outcome


def after_one_device(group: Group) -> Outcome:
    """Returns for each replica what one device holds after a step on the rows of all parts together."""
    return _outcome([_stepped(group.values, _joined(group.parts))] * len(group.parts))


def after_turns(group: Group) -> Outcome:
    """Returns what replicas hold if each one's gradient changes all before the next one computes its own."""
    values = group.values
    for part in group.parts:
        values = _stepped(values, part)
    return _outcome([values] * len(group.parts))


def after_recomputing(group: Group) -> Outcome:
    """Returns what replicas hold if the gradients are computed anew after each variable that has changed."""
    values = group.values
    for name in NAMES:
        values = {**values, name: _stepped(values, _joined(group.parts))[name]}
    return _outcome([values] * len(group.parts))


def taking(update: Update) -> Step:
    """Returns a step of real replicas that makes such an update."""

    def step(replicas: list[Any], parts: list[Part], learning_rate: float) -> list[Any]:
        partial = [gradient_on_device(*both) for both in zip(replicas, parts, strict=True)]
        for at, replica in enumerate(replicas):
            for name, variable in replica.trained.items():
                variable.assign_sub(learning_rate * update([one[name] for one in partial], at, parts))
        return replicas

    return step


def taking_turns(replicas: list[Any], parts: list[Part], learning_rate: float) -> list[Any]:
    """Lets every replica's gradient change all replicas before the next one computes its own."""
    for replica, part in zip(replicas, parts, strict=True):
        gradients = gradient_on_device(replica, part)
        for changed in replicas:
            for name, variable in changed.trained.items():
                variable.assign_sub(learning_rate * gradients[name])
    return replicas


def on_all_rows(replicas: list[Any], parts: list[Part], learning_rate: float) -> list[Any]:
    """Lets every replica compute the gradient of the whole batch."""
    for replica in replicas:
        gradients = gradient_on_device(replica, _joined(parts))
        for name, variable in replica.trained.items():
            variable.assign_sub(learning_rate * gradients[name])
    return replicas


def gradient_on_device(replica: Any, part: Part) -> dict[str, Any]:
    """Returns the gradient of the summed loss of a part, as TensorFlow computes it."""
    with on_devices() as (tf, _dtensor):
        with tf.GradientTape() as tape:
            logits = replica(tf.constant(part[0]))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part[1], logits=logits)
        gradients: dict[str, Any] = tape.gradient(losses, replica.trained)
    return gradients


def run(step: Step, group: Group) -> tuple[Outcome, Conduct]:
    """Returns what replicas, each on a device, hold after a step, and what else the step did."""
    with on_devices() as (tf, _dtensor):
        devices = tf.config.list_logical_devices(device_kind())
        replicas = []
        for at in range(len(group.parts)):
            with tf.device(devices[at % len(devices)].name):
                replicas.append(_replica(tf, group, at))
        variables = [replica.trained for replica in replicas]
        returned = step(list(replicas), list(group.parts), LEARNING_RATE)
        held = [{name: variable.numpy() for name, variable in before.items()} for before in variables]
        kept = all(
            replica.trained[name] is variable
            for replica, before in zip(replicas, variables, strict=True)
            for name, variable in before.items()
        )
        num_seeing_others = sum(replica.saw_others for replica in replicas)
    return _outcome(held), Conduct(num_seeing_others, kept, _are(returned, replicas))


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


def _outcome(held: Sequence[Values]) -> Outcome:
    return {f"replicas[{at}].{name}": array for at, each in enumerate(held) for name, array in each.items()}


def _are(returned: object, replicas: list[Any]) -> bool:
    if not isinstance(returned, (list, tuple)) or len(returned) != len(replicas):
        return False
    return all(ours is theirs for ours, theirs in zip(returned, replicas, strict=True))


def _stepped(values: Values, part: Part) -> Values:
    found = gradient(values, part)
    return {name: values[name] - LEARNING_RATE * found[name] for name in NAMES}


def _joined(parts: Sequence[Part]) -> Part:
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, labels


def _replica(tf: Any, group: Group, at: int) -> Any:
    others = np.concatenate([rows for part, (rows, _labels) in enumerate(group.parts) if part != at])
    saw_others = tf.Variable(False)  # no attribute, so that `variables` are those of the lesson

    class Replica(tf.Module):  # type: ignore[misc]
        """The lesson's model without normalisation; it notices rows of other parts, in graphs too."""

        def __init__(self) -> None:
            super().__init__()
            for name in NAMES:
                setattr(self, name, tf.Variable(group.values[name], name=name))

        def __repr__(self) -> str:
            return f"replicas[{at}]"

        @property
        def trained(self) -> dict[str, Any]:
            return {name: getattr(self, name) for name in NAMES}

        @property
        def saw_others(self) -> bool:
            return bool(saw_others.numpy())

        def __call__(self, inputs: Any) -> Any:
            return self._logits(self._hidden(inputs))

        def _hidden(self, inputs: Any) -> Any:
            hidden = tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)
            equal = tf.reduce_all(tf.equal(tf.expand_dims(inputs, 1), others), axis=2)
            saw_others.assign(tf.logical_or(saw_others, tf.reduce_any(equal)))
            return hidden

        def _logits(self, hidden: Any) -> Any:
            return tf.matmul(hidden, self.logits_weight) + self.logits_bias

    return Replica()
