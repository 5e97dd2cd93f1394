"""Replicas of a small model on real devices, and steps that they take: to judge a reader's step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.replicas import LEARNING_RATE, NAMES, Group, Outcome, Part, Update, joined, named
from course_lib.runtime import device_kind

Step = Callable[[list[Any], list[Part], float], Any]


@dataclass(frozen=True)
class Conduct:
    """What a step did besides changing variables.

    Attributes:
        num_idle: how many replicas computed nothing.
        num_seeing_others: how many replicas saw rows of other parts.
        keeps_variables: whether each replica still has the variables that it had.
        returns_replicas: whether it returned the replicas that it got.
    """

    num_idle: int
    num_seeing_others: int
    keeps_variables: bool
    returns_replicas: bool


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
        gradients = gradient_on_device(replica, joined(parts))
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
        num_idle = sum(not replica.computed for replica in replicas)
        num_seeing_others = sum(replica.saw_others for replica in replicas)
    return named(held), Conduct(num_idle, num_seeing_others, kept, _are(returned, replicas))


def _are(returned: object, replicas: list[Any]) -> bool:
    if not isinstance(returned, (list, tuple)) or len(returned) != len(replicas):
        return False
    return all(ours is theirs for ours, theirs in zip(returned, replicas, strict=True))


def _replica(tf: Any, group: Group, at: int) -> Any:
    others = np.concatenate([rows for part, (rows, _labels) in enumerate(group.parts) if part != at])
    # No attributes, so that `variables` are those of the lesson.
    computed, saw_others = tf.Variable(False), tf.Variable(False)

    class Replica(tf.Module):  # type: ignore[misc]
        """The lesson's model without normalisation; it notes the rows that it meets, in graphs too."""

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
        def computed(self) -> bool:
            return bool(computed.numpy())

        @property
        def saw_others(self) -> bool:
            return bool(saw_others.numpy())

        def __call__(self, inputs: Any) -> Any:
            return self._logits(self._hidden(inputs))

        def _hidden(self, inputs: Any) -> Any:
            hidden = tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)
            equal = tf.reduce_all(tf.equal(tf.expand_dims(inputs, 1), others), axis=2)
            computed.assign(True)
            saw_others.assign(tf.logical_or(saw_others, tf.reduce_any(equal)))
            return hidden

        def _logits(self, hidden: Any) -> Any:
            return tf.matmul(hidden, self.logits_weight) + self.logits_bias

    return Replica()
