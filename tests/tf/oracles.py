"""Two independent trainings of the MLP, without DTensor: NumPy in float64 by hand, and plain TensorFlow."""

import numpy as np
import tensorflow as tf

from course_lib.data.examples import Examples

EPSILON = 1e-5
MOMENTUM = 0.9


def random_examples(num_examples: int, num_features: int = 1200, seed: int = 0) -> Examples:
    """Returns examples whose label depends on some features, with noise."""
    random = np.random.default_rng(seed)
    features = random.standard_normal((num_examples, num_features)).astype(np.float32)
    score = features[:, : num_features // 8].sum(axis=1) + random.standard_normal(num_examples)
    return Examples(features, (score > 0).astype(np.int64))


def batches(examples: Examples, num_steps: int, batch_size: int = 64, seed: int = 0, first: int = 0):
    """Yields the batches that training documents: a Philox permutation for each epoch, remainder dropped."""
    per_epoch = len(examples) // batch_size
    for step in range(first, first + num_steps):
        epoch, at = divmod(step, per_epoch)
        order = np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(len(examples))
        rows = order[at * batch_size : (at + 1) * batch_size]
        yield examples.features[rows], examples.labels[rows]


def train_numpy(values, examples, num_steps, *, learning_rate=1e-2, batch_size=64, seed=0, first=0):
    """Returns the losses per example and the values after some steps, computed in float64."""
    new = {name: value.astype(np.float64) for name, value in values.items()}
    losses = []
    for inputs, labels in batches(examples, num_steps, batch_size, seed, first):
        loss, gradients, moments = _numpy_gradients(new, inputs.astype(np.float64), labels)
        losses.append(loss / batch_size)
        for name, gradient in gradients.items():
            new[name] = new[name] - learning_rate * gradient
        for name, moment in zip(("moving_mean", "moving_variance"), moments, strict=True):
            new[name] = MOMENTUM * new[name] + (1 - MOMENTUM) * moment
    return np.array(losses), new


def _numpy_gradients(values, inputs, labels):
    before = inputs @ values["hidden_weight"] + values["hidden_bias"]
    hidden = np.maximum(before, 0)
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    scale = 1 / np.sqrt(variance + EPSILON)
    normal = (hidden - mean) * scale
    logits = normal @ values["logits_weight"] + values["logits_bias"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    chosen = np.eye(logits.shape[1])[labels]
    loss = -(chosen * log_probabilities).sum()
    to_logits = np.exp(log_probabilities) - chosen
    to_normal = to_logits @ values["logits_weight"].T
    to_hidden = scale * (to_normal - to_normal.mean(axis=0) - normal * (to_normal * normal).mean(axis=0))
    to_before = to_hidden * (before > 0)
    gradients = {
        "hidden_weight": inputs.T @ to_before,
        "hidden_bias": to_before.sum(axis=0),
        "logits_weight": normal.T @ to_logits,
        "logits_bias": to_logits.sum(axis=0),
    }
    return loss, gradients, (mean, variance)


def train_one_device(values, examples, num_steps, *, learning_rate=1e-2, batch_size=64, seed=0):
    """Returns the losses per example and the values after some steps on one device, in plain TensorFlow."""
    variables = {name: tf.Variable(value) for name, value in values.items()}
    trained = ["hidden_weight", "hidden_bias", "logits_weight", "logits_bias"]
    losses = []
    for inputs, labels in batches(examples, num_steps, batch_size, seed):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(inputs @ variables["hidden_weight"] + variables["hidden_bias"])
            mean = tf.reduce_mean(hidden, axis=0)
            variance = tf.reduce_mean(tf.square(hidden - mean), axis=0)
            normal = (hidden - mean) / tf.sqrt(variance + EPSILON)
            logits = normal @ variables["logits_weight"] + variables["logits_bias"]
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        losses.append(float(loss) / batch_size)
        for name, gradient in zip(trained, tape.gradient(loss, [variables[n] for n in trained]), strict=True):
            variables[name].assign_sub(learning_rate * gradient)
        for name, moment in (("moving_mean", mean), ("moving_variance", variance)):
            variables[name].assign(MOMENTUM * variables[name] + (1 - MOMENTUM) * moment)
    return np.array(losses), {name: variable.numpy() for name, variable in variables.items()}


def evaluate_numpy(values, examples):
    """Returns the mean loss and the accuracy with the moving moments, computed in float64."""
    wide = {name: np.asarray(value, np.float64) for name, value in values.items()}
    hidden = np.maximum(examples.features @ wide["hidden_weight"] + wide["hidden_bias"], 0)
    normal = (hidden - wide["moving_mean"]) / np.sqrt(wide["moving_variance"] + EPSILON)
    logits = normal @ wide["logits_weight"] + wide["logits_bias"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(examples))
    return -log_probabilities[rows, examples.labels].mean(), (logits.argmax(axis=1) == examples.labels).mean()
