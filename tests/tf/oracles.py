"""An independent step of the lessons' MLP, without TensorFlow: NumPy in float64, by hand."""

import numpy as np


def numpy_gradients(values, inputs, labels):
    """Returns the summed loss of a batch, the gradients of the weights, and the batch's mean and variance."""
    before = inputs @ values["W1"] + values["b1"]
    hidden = np.maximum(before, 0)
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    scale = 1 / np.sqrt(variance + 1e-5)
    normal = (hidden - mean) * scale
    logits = normal @ values["W2"] + values["b2"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    chosen = np.eye(logits.shape[1])[labels]
    to_logits = np.exp(log_probabilities) - chosen
    to_normal = to_logits @ values["W2"].T
    to_hidden = scale * (to_normal - to_normal.mean(axis=0) - normal * (to_normal * normal).mean(axis=0))
    to_before = to_hidden * (before > 0)
    gradients = {
        "W1": inputs.T @ to_before,
        "b1": to_before.sum(axis=0),
        "W2": normal.T @ to_logits,
        "b2": to_logits.sum(axis=0),
    }
    return -(chosen * log_probabilities).sum(), gradients, (mean, variance)
