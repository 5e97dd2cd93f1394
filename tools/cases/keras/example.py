"""What every case trains: two dense layers, their first values and the batches; and the same in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

BATCH_SIZE, FEATURES, HIDDEN, CLASSES, STEPS = 16, 20, 48, 2, 20
LEARNING_RATE, MOMENTUM = 0.1, 0.9  # SGD shows a gradient that is twice too large; Adam would hide it


def first_values() -> list[np.ndarray]:
    """Returns equal values for equal shapes, whichever Keras they go to."""
    random = np.random.default_rng(3)
    shapes = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
    return [random.normal(0, 0.3, shape).astype(np.float32) for shape in shapes]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Returns `[examples, features]` and `[examples]`: a batch for each step, none like another."""
    features = np.random.default_rng(5).random((STEPS * BATCH_SIZE, FEATURES), np.float32)
    return features, (features.sum(axis=1) > FEATURES / 2).astype(np.int64)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the examples batch by batch."""
    features, labels = (np.split(array, STEPS) for array in examples())
    return list(zip(features, labels, strict=True))


def layers(keras: Any, **options: Mapping[str, Any]) -> list[Any]:
    """Returns the layers of the model, of either Keras; options by the name of their layer."""
    dense = keras.layers.Dense
    return [
        keras.Input((FEATURES,)),
        dense(HIDDEN, activation="relu", name="hidden", **options.get("hidden", {})),
        dense(CLASSES, name="logits", **options.get("logits", {})),
    ]


def difference(ours: Any, theirs: Any) -> float:
    """Returns the largest difference between numbers in the same place."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(np.asarray(one) - np.asarray(other)))) for one, other in pairs)


def trained() -> tuple[list[float], list[np.ndarray]]:
    """Returns the mean loss of each step, before its update, and the variables after the last, by NumPy."""
    values = [value.astype(np.float64) for value in first_values()]
    velocities = [np.zeros_like(value) for value in values]
    losses = []
    for batch in batches():
        loss, gradients = loss_and_gradients(values, *batch)
        losses.append(loss)
        pairs = zip(velocities, gradients, strict=True)
        velocities = [MOMENTUM * velocity - LEARNING_RATE * gradient for velocity, gradient in pairs]
        values = [value + velocity for value, velocity in zip(values, velocities, strict=True)]
    return losses, values


def loss_and_gradients(
    values: list[np.ndarray], features: np.ndarray, labels: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    """Returns the mean loss of some examples, and its gradients by the values."""
    hidden_kernel, hidden_bias, logits_kernel, logits_bias = values
    before_relu = features @ hidden_kernel + hidden_bias
    hidden = np.maximum(before_relu, 0)
    logits = hidden @ logits_kernel + logits_bias
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    of_labels = np.arange(len(labels)), labels
    loss = -float(np.mean(np.log(probabilities[of_labels])))
    of_logits = probabilities / len(labels)
    of_logits[of_labels] -= 1 / len(labels)
    of_hidden = (of_logits @ logits_kernel.T) * (before_relu > 0)
    return loss, [features.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ of_logits, of_logits.sum(axis=0)]
