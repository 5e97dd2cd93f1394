"""A small model by NumPy, on one device: what a reader's evaluation or answers are held against."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DEVICES = 8
_SIZES = (6, 4, 2)  # features, hidden units, classes of the small model
_EPSILON = 1e-5  # as the MLP has it


def some_reviews(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Returns features `[count, features] global` and labels `[count] global`."""
    features = random.integers(-4, 5, (count, _SIZES[0])) / 2
    return np.array(features, np.float32), random.integers(0, 2, count)


def small_values() -> dict[str, Array]:
    """Returns the values of the small model by name; all but the weights have few binary digits."""
    values: dict[str, Array] = import_module("course_lib.models.sentiment").initial_values(0, dims=_SIZES)
    random = np.random.default_rng(1)
    values["hidden_bias"] = np.array(random.integers(-4, 5, _SIZES[1]) / 4, np.float32)
    values["logits_bias"] = np.array([0.5, -0.5], np.float32)
    values["moving_mean"] = np.array(random.integers(0, 4, _SIZES[1]) / 4, np.float32)
    values["moving_variance"] = np.array(random.integers(1, 8, _SIZES[1]) / 4, np.float32)
    return values


def logits_of(values: Mapping[str, Array], rows: Array, *, own_moments: bool = False) -> Array:
    """Returns the logits of a model with these values, `[rows, classes] global`, in float64.

    Args:
        values: of each variable, by name.
        rows: `[rows, features] global`.
        own_moments: normalises with the moments of these rows, as training does, in place of the moving ones.
    """
    hidden = np.maximum(rows @ values["hidden_weight"] + values["hidden_bias"], 0)
    mean, variance = values["moving_mean"], values["moving_variance"]
    if own_moments:
        mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    normal = (hidden - mean) / np.sqrt(variance + _EPSILON)
    return np.asarray(normal @ values["logits_weight"] + values["logits_bias"], np.float64)


def softmax(logits: Array) -> Array:
    """Returns probabilities, class by class along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
