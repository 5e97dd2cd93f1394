"""Mirrored training on 1, 2, 4 and 8 replicas equals one device, and NumPy, over 20 steps."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from course_lib.strategies import mirrored, require_in_scope, require_no_plain_updates, require_per_example

tf = start_tensorflow()
keras = tf.keras

STEPS, BATCH, SIZES, RATE = 20, 16, (6, 10, 3), 0.2


def drawn():
    """Returns features, labels and initial weights, the same every time."""
    numbers = np.random.default_rng(3)
    features = numbers.normal(size=(STEPS * BATCH, SIZES[0])).astype(np.float32)
    labels = features[:, : SIZES[2]].argmax(axis=1)
    shapes = [SIZES[:2], SIZES[1:2], SIZES[1:], SIZES[2:]]
    return features, labels, [numbers.normal(scale=0.4, size=each).astype(np.float32) for each in shapes]


def in_numpy():
    """Returns the losses and the last weights of a training in float64, its gradients written out."""
    features, labels, weights = drawn()
    hidden_weight, hidden_bias, weight, bias = (each.astype(np.float64) for each in weights)
    losses = []
    for start in range(0, len(features), BATCH):
        x, wanted = features[start : start + BATCH].astype(np.float64), labels[start : start + BATCH]
        hidden = np.maximum(x @ hidden_weight + hidden_bias, 0)
        logits = hidden @ weight + bias
        logits -= logits.max(axis=1, keepdims=True)
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log(probabilities[np.arange(BATCH), wanted])))
        slope = (probabilities - np.eye(SIZES[2])[wanted]) / BATCH
        before = (slope @ weight.T) * (hidden > 0)
        weight, bias = weight - RATE * hidden.T @ slope, bias - RATE * slope.sum(axis=0)
        hidden_weight, hidden_bias = (
            hidden_weight - RATE * x.T @ before,
            hidden_bias - RATE * before.sum(axis=0),
        )
    return np.array(losses), [hidden_weight, hidden_bias, weight, bias]


def parts(strategy, values, start):
    """Returns the batch that begins at `start`, a part of it for each replica.

    No distributed dataset: to give up that of 8 replicas took 40 s, in which no processor was busy.
    """
    each = BATCH // strategy.num_replicas_in_sync

    def part(replica):
        first = start + each * replica.replica_id_in_sync_group
        return tf.constant(values[first : first + each])

    return strategy.experimental_distribute_values_from_function(part)


def trained(strategy):
    """Returns the losses and the last weights, of every replica, of a custom loop with Keras 3."""
    features, labels, weights = drawn()
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input([SIZES[0]]),
                keras.layers.Dense(SIZES[1], activation="relu"),
                keras.layers.Dense(SIZES[2]),
            ]
        )
        optimizer = keras.optimizers.SGD(RATE)
        optimizer.build(model.trainable_variables)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    model.set_weights(weights)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_of(y, model(x, training=True)), global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(x, y)), axis=None)

    require_per_example(loss_of)
    if strategy.num_replicas_in_sync > 1:
        require_in_scope(strategy, model, optimizer)
        require_no_plain_updates(strategy, replica_step, (tf.constant(features[:2]), tf.constant(labels[:2])))
    losses = [
        float(step(parts(strategy, features, start), parts(strategy, labels, start)))
        for start in range(0, len(features), BATCH)
    ]
    copies = [strategy.experimental_local_results(each.value) for each in model.trainable_variables]
    return np.array(losses), [[copy.numpy() for copy in each] for each in copies]


def test_any_number_of_replicas_equals_one_device_and_numpy():
    right_losses, right_weights = in_numpy()
    assert right_losses[-1] < right_losses[0] - 0.1
    one_losses, one_weights = trained(tf.distribute.get_strategy())
    for replicas in (1, 2, 4, 8):
        losses, weights = trained(mirrored(replicas))
        assert len(losses) == STEPS
        assert losses == pytest.approx(one_losses, abs=1e-5)
        assert losses == pytest.approx(right_losses, abs=1e-5)
        for copies, (one,), right in zip(weights, one_weights, right_weights, strict=True):
            assert len(copies) == replicas
            for copy in copies:
                np.testing.assert_array_equal(copy, copies[0])
                np.testing.assert_allclose(copy, one, atol=1e-5)
                np.testing.assert_allclose(copy, right, atol=1e-5)
