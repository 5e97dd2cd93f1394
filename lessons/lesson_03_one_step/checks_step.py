"""Exercise 03-step: the training step of a group of devices, written by hand, on real devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.replicas import (
    LEARNING_RATE,
    NAMES,
    Group,
    Outcome,
    Part,
    after,
    after_one_device,
    after_turns,
    draw_group,
    named,
)
from course_lib.i18n import _, ngettext
from course_lib.runtime import device_kind

Step = Callable[[list[Any], list[Part], float], Any]


@dataclass(frozen=True)
class Conduct:
    """What a step did besides changing variables.

    Attributes:
        num_idle: how many replicas computed nothing.
        num_seeing_others: how many replicas saw rows of other parts.
        returns_replicas: whether it returned the replicas that it got.
    """

    num_idle: int
    num_seeing_others: int
    returns_replicas: bool


def _right_step(replicas: list[Any], parts: list[Part], learning_rate: float) -> list[Any]:
    partial = [_gradients(*both) for both in zip(replicas, parts, strict=True)]
    for replica in replicas:
        for name, variable in replica.trained.items():
            variable.assign_sub(learning_rate * sum(gradients[name] for gradients in partial))
    return replicas


def _gradients(replica: Any, part: Part) -> dict[str, Any]:
    """Returns the gradient of the summed loss of a part, as TensorFlow computes it."""
    with on_devices() as (tf, _dtensor), tf.GradientTape() as tape:
        logits = replica(tf.constant(part[0]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part[1], logits=logits)
    gradients: dict[str, Any] = tape.gradient(losses, replica.trained)
    return gradients


@exercise("03-step", right=_right_step, on_devices=True)
def step(answer: Step) -> str | None:
    """The step of a group of devices, held against one device."""
    mistakes = {
        after(lambda partial, at, parts: partial[at]): _(
            "Each replica took the gradient of its own part, so they drift apart. Add the gradients first."
        ),
        after(lambda partial, at, parts: sum(partial) / len(partial)): _(
            "This is the mean of the partial gradients. `train_step` minimises a sum: add them."
        ),
        after(lambda partial, at, parts: partial[0] * 0.0): _(
            "After your step no replica has changed. Write with `assign_sub`."
        ),
        after_turns: _(
            "A replica changed before all gradients were there. Compute every partial gradient before any"
            " replica changes."
        ),
    }
    answer = getattr(answer, "python_function", answer)  # a `tf.function` would be traced with all replicas
    random = np.random.default_rng(0)
    groups = {
        (2, 5, 3): _("3 replicas with 2, 5 and 3 rows"),
        (3, 1, 4, 2, 6, 5, 8, 7): _("8 replicas with 3, 1, 4, 2, 6, 5, 8 and 7 rows"),
    }
    cases = [Case((draw_group(random, sizes),), told=told) for sizes, told in groups.items()]
    conducts: list[Conduct] = []

    def run(step: Step, group: Group) -> Outcome:
        outcome, conduct = _run(step, group)
        conducts.append(conduct)
        return outcome

    advice = _("Compare with `train_step` on one model with all rows.")
    hint = judge(answer, after_one_device, cases, misconceptions=mistakes, run=run, advice=advice)
    seen, values_are_right = max((conduct.num_seeing_others for conduct in conducts), default=0), hint is None
    if seen:
        return ngettext(
            "{count} replica saw rows of other parts. Each may see its own only.",
            "{count} replicas saw rows of other parts. Each may see its own only.",
            seen,
        )
    if values_are_right and (idle := max(conduct.num_idle for conduct in conducts)):
        return ngettext(
            "{count} replica computed nothing. Each takes the gradient of its own part.",
            "{count} replicas computed nothing. Each takes the gradient of its own part.",
            idle,
        )
    if values_are_right and not all(conduct.returns_replicas for conduct in conducts):
        return _("The replicas hold the right values. Now return them: `return replicas`.")
    return hint


def _run(step: Step, group: Group) -> tuple[Outcome, Conduct]:
    """Returns what replicas, each on a device, hold after a step, and what else the step did."""
    with on_devices() as (tf, _dtensor):
        devices = tf.config.list_logical_devices(device_kind())
        replicas = []
        for at in range(len(group.parts)):
            with tf.device(devices[at % len(devices)].name):
                replicas.append(_replica(tf, group, at))
        variables = [
            replica.trained for replica in replicas
        ]  # also where the step puts others in their place
        returned = step(list(replicas), list(group.parts), LEARNING_RATE)
        held = [{name: variable.numpy() for name, variable in of_one.items()} for of_one in variables]
        conduct = Conduct(
            num_idle=sum(not replica.computed for replica in replicas),
            num_seeing_others=sum(replica.saw_others for replica in replicas),
            returns_replicas=isinstance(returned, (list, tuple))
            and [*map(id, returned)] == [*map(id, replicas)],
        )
    return named(held), conduct


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
