"""The lessons' model in small, and its logits without TensorFlow: to judge what a reader writes for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course_lib.exercises.values import Array
from course_lib.runtime import start_tensorflow

FEATURES = 6
_HIDDEN, _CLASSES, _EPSILON = 4, 2, 1e-5


def small_values() -> dict[str, Array]:
    """Returns the value of each variable by its name in the lessons: few binary digits, no mean below 0."""
    random = np.random.default_rng(149)  # both answers occur, and none is near the border
    shapes = {"W1": (FEATURES, _HIDDEN), "b1": (_HIDDEN,), "W2": (_HIDDEN, _CLASSES), "b2": (_CLASSES,)}
    values = {name: random.integers(-4, 5, shape) / 4 for name, shape in shapes.items()}
    values |= {name: random.integers(least, 8, _HIDDEN) / 4 for name, least in (("mean", 0), ("variance", 1))}
    return {name: value.astype(np.float32) for name, value in values.items()}


def logits_of(values: Mapping[str, Array], rows: Array, *, own_moments: bool = False) -> Array:
    """Returns the logits of a model with these values, `[rows, classes] global`, in float64.

    Args:
        values: of each variable, by name.
        rows: `[rows, features] global`.
        own_moments: normalises with the moments of these rows, as training does, in place of the moving ones.
    """
    hidden = np.maximum(rows @ values["W1"] + values["b1"], 0)
    mean, variance = values["mean"], values["variance"]
    if own_moments:
        mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    normal = (hidden - mean) / np.sqrt(variance + _EPSILON)
    return np.asarray(normal @ values["W2"] + values["b2"], np.float64)


def small_model(values: Mapping[str, Array], variable: Callable[[Array], Any]) -> Any:
    """Returns a model with these values and the names of the lessons' model, which is called as they are."""
    tf = start_tensorflow()

    class MLP(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, value in values.items():
                setattr(self, name, variable(value))

        def __call__(self, x: Any, moments: Any = None) -> Any:
            hidden = self.hidden(x)
            mean, variance = moments or tf.nn.moments(hidden, axes=[0])
            return self.logits(hidden, mean, variance), (mean, variance)

        def hidden(self, x: Any) -> Any:
            return tf.nn.relu(x @ self.W1 + self.b1)

        def logits(self, hidden: Any, mean: Any, variance: Any) -> Any:
            normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, _EPSILON)
            return normal @ self.W2 + self.b2

    return MLP()
