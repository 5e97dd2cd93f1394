"""Evaluations of a small model by NumPy, on one device: the right one, and plausible mistakes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DEVICES = 8
_SIZES = (6, 4, 2)  # features, hidden units, classes of the small model


def some_reviews(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Returns features `[count, features] global` and labels `[count] global`."""
    features = random.integers(-4, 5, (count, _SIZES[0])) / 2
    return np.array(features, np.float32), random.integers(0, 2, count)


def some_reviews_and_a_rest(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns features and labels of reviews whose number does not divide by 8."""
    return some_reviews(random, int(random.choice([11, 13, 18, 21])))


def small_values() -> dict[str, Array]:
    """Returns the values of the small model by name; all but the weights have few binary digits."""
    values: dict[str, Array] = import_module("course_lib.models.sentiment").initial_values(0, dims=_SIZES)
    random = np.random.default_rng(1)
    values["hidden_bias"] = np.array(random.integers(-4, 5, _SIZES[1]) / 4, np.float32)
    values["logits_bias"] = np.array([0.5, -0.5], np.float32)
    values["moving_mean"] = np.array(random.integers(0, 4, _SIZES[1]) / 4, np.float32)
    values["moving_variance"] = np.array(random.integers(1, 8, _SIZES[1]) / 4, np.float32)
    return values


def _losses_and_hits(features: Array, labels: Array) -> tuple[Array, Array]:
    """Returns the loss of each row and whether it was classified rightly, by NumPy on one device."""
    values = small_values()
    hidden = np.maximum(features @ values["hidden_weight"] + values["hidden_bias"], 0)
    normal = (hidden - values["moving_mean"]) / np.sqrt(values["moving_variance"] + 1e-5)
    logits = (normal @ values["logits_weight"] + values["logits_bias"]).astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return losses, np.argmax(logits, axis=1) == labels


def evaluated(features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean loss and the accuracy, by NumPy on one device."""
    losses, hits = _losses_and_hits(features, labels)
    return float(losses.mean()), float(hits.mean())


def padded(features: Array, labels: Array) -> tuple[Array, Array]:
    """Returns both filled up with zeros to a multiple of 8 rows."""
    rest = -len(labels) % DEVICES
    return np.pad(features, ((0, rest), (0, 0))), np.pad(labels, (0, rest))


def padding_counted(features: Array, labels: Array) -> tuple[float, float]:
    """Counts the rows that fill up, rows of zeros with the label 0."""
    return evaluated(*padded(features, labels))


class Mean(Enum):
    """What readers make of the values of all rows, those that fill up included; two of them are mistakes."""

    OF_REVIEWS = "the sum over the reviews, divided by their number"
    SUM_OF_ROWS = "the sum over the rows, divided by the number of reviews"
    OF_ROWS = "the sum over the rows, divided by their number"


def partly_counted(loss: Mean, accuracy: Mean) -> Callable[[Array, Array], tuple[float, float]]:
    """Returns an evaluation that may count the rows that fill up in either of its sums."""

    def mean(values: Array, count: int, how: Mean) -> float:
        rows = values[:count] if how is Mean.OF_REVIEWS else values
        return float(rows.sum()) / (len(rows) if how is Mean.OF_ROWS else count)

    def evaluation(features: Array, labels: Array) -> tuple[float, float]:
        losses, hits = _losses_and_hits(*padded(features, labels))
        return mean(losses, len(labels), loss), mean(hits, len(labels), accuracy)

    return evaluation


def divided_by_padded(features: Array, labels: Array) -> tuple[float, float]:
    """Divides by the number of rows instead of reviews."""
    share = len(labels) / len(padded(features, labels)[1])
    loss, accuracy = evaluated(features, labels)
    return loss * share, accuracy * share


def rest_dropped(features: Array, labels: Array) -> tuple[float, float]:
    """Leaves the last reviews out."""
    rows = len(labels) // DEVICES * DEVICES
    return evaluated(features[:rows], labels[:rows])


def mean_of_devices(features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean over the devices that have a review of the mean of each."""
    rows = len(padded(features, labels)[1]) // DEVICES
    parts = [slice(start, start + rows) for start in range(0, len(labels), rows)]
    means = np.array([evaluated(features[part], labels[part]) for part in parts])
    return float(means[:, 0].mean()), float(means[:, 1].mean())


def mean_of_batches(size: int) -> Callable[[Array, Array], tuple[float, float]]:
    """Returns an evaluation that gives the mean over batches of `size` rows of the mean of each."""

    def evaluation(features: Array, labels: Array) -> tuple[float, float]:
        parts = [slice(start, start + size) for start in range(0, len(labels), size)]
        means = np.array([evaluated(features[part], labels[part]) for part in parts])
        return float(means[:, 0].mean()), float(means[:, 1].mean())

    return evaluation


def last_repeated(features: Array, labels: Array) -> tuple[float, float]:
    """Fills up with copies of the last review and counts them."""
    rows = np.minimum(np.arange(len(padded(features, labels)[1])), len(labels) - 1)
    return evaluated(features[rows], labels[rows])


def first_repeated(features: Array, labels: Array) -> tuple[float, float]:
    """Fills up with copies of the first reviews and counts them."""
    rows = np.arange(len(padded(features, labels)[1])) % len(labels)
    return evaluated(features[rows], labels[rows])


def loss_alone(features: Array, labels: Array) -> float:
    """Returns one of the two numbers."""
    return evaluated(features, labels)[0]


def summed(features: Array, labels: Array) -> tuple[float, float]:
    """Does not divide."""
    loss, accuracy = evaluated(features, labels)
    return loss * len(labels), accuracy * len(labels)


def the_other_way_round(features: Array, labels: Array) -> tuple[float, float]:
    """Gives the accuracy first."""
    loss, accuracy = evaluated(features, labels)
    return accuracy, loss
