"""A small classifier by NumPy, as lesson 06 serves it: its right answers, and plausible wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = Mapping[str, Array]

_EPSILON = 1e-5  # as the MLP has it


def served(values: Values, rows: Array) -> Array:
    """Returns the probabilities with the moving moments, `[rows, classes] global`: each row for itself."""
    return softmax(_logits(values, hidden(values, rows), values["moving_mean"], values["moving_variance"]))


def with_own_moments(values: Values, rows: Array) -> Array:
    """Returns the probabilities with the moments of these rows, as training computes them."""
    units = hidden(values, rows)
    return softmax(_logits(values, units, units.mean(axis=0), units.var(axis=0)))


def without_moments(values: Values, rows: Array) -> Array:
    """Returns the probabilities where nothing is normalised."""
    return softmax(_logits(values, hidden(values, rows), np.zeros(1), np.ones(1)))


def served_logits(values: Values, rows: Array) -> Array:
    """Returns the logits with the moving moments."""
    return _logits(values, hidden(values, rows), values["moving_mean"], values["moving_variance"])


def hidden(values: Values, rows: Array) -> Array:
    """Returns what the hidden units give, `[rows, hidden] global`."""
    return np.asarray(np.maximum(rows @ values["hidden_weight"] + values["hidden_bias"], 0))


def softmax(logits: Array) -> Array:
    """Returns probabilities, class by class along the last axis."""
    powers = np.exp(np.float64(logits) - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _logits(values: Values, units: Array, mean: Array, variance: Array) -> Array:
    normal = (units - mean) / np.sqrt(variance + _EPSILON)
    return np.asarray(normal @ values["logits_weight"] + values["logits_bias"])
