"""Replicas of a small model on real devices, and the steps that they may take: to judge a reader's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = dict[str, Array]
Part = tuple[Array, Array]  # rows and labels
Step = Callable[[list[Any], list[Part], float], Any]
Held = tuple[tuple[Array, ...], ...]

# What a device makes of the partial gradients of a variable: it gets all of them, its number, and the parts.
Update = Callable[[list[Any], int, list[Part]], Any]

NAMES = ("hidden_weight", "hidden_bias", "logits_weight", "logits_bias")
FEATURES, HIDDEN, CLASSES = 3, 4, 2
_SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
_LEARNING_RATE = 0.125


def draw_step(random: np.random.Generator, sizes: Sequence[int]) -> tuple[Values, list[Part], float]:
    """Returns the values of a small MLP without normalisation, a part for each device, and a learning rate.

    Args:
        random: where numbers come from.
        sizes: the number of rows of each part; all different, so that a part is known by it.
    """
    values = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in zip(NAMES, _SHAPES, strict=True)
    }
    parts = [
        (random.standard_normal((size, FEATURES)).astype(np.float32), random.integers(0, CLASSES, size))
        for size in sizes
    ]
    return values, parts, _LEARNING_RATE


def one_device(values: Values, parts: list[Part], learning_rate: float) -> tuple[Held, int]:
    """Returns for each replica what one device holds after a step on the rows of all parts together."""
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    gradient = _gradient(values, (rows, labels))
    held = tuple(values[name] - learning_rate * gradient[name] for name in NAMES)
    return (held,) * len(parts), 0


def predicted(
    update: Update, *, seeing_others: bool = False
) -> Callable[[Values, list[Part], float], tuple[Held, int]]:
    """Returns a function that computes, in float64 on the host, what replicas hold after such an update.

    Args:
        update: what each replica makes of the partial gradients.
        seeing_others: whether every replica sees rows of other parts.
    """

    def outcome(values: Values, parts: list[Part], learning_rate: float) -> tuple[Held, int]:
        partial = [_gradient(values, part) for part in parts]
        held = tuple(
            tuple(
                values[name] - learning_rate * update([one[name] for one in partial], at, parts)
                for name in NAMES
            )
            for at in range(len(parts))
        )
        return held, len(parts) if seeing_others else 0

    return outcome


def taken(update: Update) -> Step:
    """Returns a step of real replicas, which makes such an update."""

    def step(replicas: list[Any], parts: list[Part], learning_rate: float) -> None:
        partial = [gradient_on_device(*both) for both in zip(replicas, parts, strict=True)]
        for at, replica in enumerate(replicas):
            for name, variable in replica.trained.items():
                variable.assign_sub(learning_rate * update([one[name] for one in partial], at, parts))

    return step


def gradient_on_device(replica: Any, part: Part) -> dict[str, Any]:
    """Returns the gradient of the summed loss of a part, as TensorFlow computes it."""
    tf = _tensorflow()
    with tf.GradientTape() as tape:
        logits = replica(tf.constant(part[0]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part[1], logits=logits)
    gradient: dict[str, Any] = tape.gradient(losses, replica.trained)
    return gradient


def run(step: Step, values: Values, parts: list[Part], learning_rate: float) -> tuple[Held, int]:
    """Returns what replicas on a device each hold after a step, and how many saw rows of other parts."""
    tf = _tensorflow()
    devices = tf.config.list_logical_devices(tf.config.list_logical_devices()[-1].device_type)
    replicas = []
    for at, (rows, _labels) in enumerate(parts):
        with tf.device(devices[at % len(devices)].name):
            replicas.append(_replica(values, len(rows)))
    step(replicas, list(parts), learning_rate)
    held = tuple(tuple(replica.trained[name].numpy() for name in NAMES) for replica in replicas)
    return held, sum(replica.saw_others for replica in replicas)


def _replica(values: Values, num_rows: int) -> Any:
    tf = _tensorflow()

    class Replica(tf.Module):  # type: ignore[misc, name-defined]
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


def _gradient(values: Values, part: Part) -> Values:
    """Returns the gradient of the summed cross entropy of a part, by hand and in float64."""
    rows, labels = part
    wide = {name: value.astype(np.float64) for name, value in values.items()}
    before = rows @ wide["hidden_weight"] + wide["hidden_bias"]
    hidden = np.maximum(before, 0)
    logits = hidden @ wide["logits_weight"] + wide["logits_bias"]
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    to_logits = chances / chances.sum(axis=1, keepdims=True) - np.eye(CLASSES)[labels]
    to_before = to_logits @ wide["logits_weight"].T * (before > 0)
    found = rows.T @ to_before, to_before.sum(axis=0), hidden.T @ to_logits, to_logits.sum(axis=0)
    return dict(zip(NAMES, found, strict=True))


def _tensorflow() -> Any:
    from course_lib.runtime import start_tensorflow

    return start_tensorflow()
