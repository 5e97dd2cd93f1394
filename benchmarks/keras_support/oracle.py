"""The training of `example` in NumPy: what every strategy is held to, and nothing of TensorFlow."""

from __future__ import annotations

import numpy as np
from example import BATCH_SIZE, batches, first_values

LEARNING_RATE, MOMENTUM = 0.1, 0.9  # SGD shows a gradient that is twice too large; Adam would hide it


def trained() -> tuple[list[float], list[np.ndarray]]:
    """Returns the mean loss of each step, before its update, and the variables after the last."""
    values = [value.astype(np.float64) for value in first_values()]
    velocities = [np.zeros_like(value) for value in values]
    losses = []
    for features, labels in batches():
        loss, gradients = _loss_and_gradients(values, features, labels)
        losses.append(loss)
        pairs = zip(velocities, gradients, strict=True)
        velocities = [MOMENTUM * velocity - LEARNING_RATE * gradient for velocity, gradient in pairs]
        values = [value + velocity for value, velocity in zip(values, velocities, strict=True)]
    return losses, values


def mean_loss(values: list[np.ndarray]) -> float:
    """Returns the mean loss of all examples with these values of the variables."""
    return float(np.mean([_loss_and_gradients(values, *batch)[0] for batch in batches()]))


def _loss_and_gradients(
    values: list[np.ndarray], features: np.ndarray, labels: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    hidden_kernel, hidden_bias, logits_kernel, logits_bias = values
    before_relu = features @ hidden_kernel + hidden_bias
    hidden = np.maximum(before_relu, 0)
    logits = hidden @ logits_kernel + logits_bias
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    of_labels = np.arange(BATCH_SIZE), labels
    loss = -float(np.mean(np.log(probabilities[of_labels])))
    of_logits = probabilities / BATCH_SIZE
    of_logits[of_labels] -= 1 / BATCH_SIZE
    of_hidden = (of_logits @ logits_kernel.T) * (before_relu > 0)
    return loss, [
        features.T @ of_hidden,
        of_hidden.sum(axis=0),
        hidden.T @ of_logits,
        of_logits.sum(axis=0),
    ]
