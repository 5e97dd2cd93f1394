"""A distributed Estimator, as programs up to TensorFlow 2.15 have it: a linear model on two virtual CPUs.

    build/estimator-venv/bin/python tools/cases/keras/estimator.py mirrored

It needs TensorFlow 2.15 (`make estimator` installs it), and nothing of the course. The strategy stands in
RunConfig; the Estimator calls `input_fn` and builds its model under it. With the strategy `mirrored` each of
two replicas takes batches of its own: in 10 steps, 20 batches. The case prints whether that many replicas
trained, and how far variables and loss are from what they are by hand.

Source: https://www.tensorflow.org/guide/estimator
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

COPIES, BATCH_SIZE, STEPS, LEARNING_RATE = 1_000, 10, 10, 0.02
TWO_CPUS = ["/cpu:0", "/cpu:1"]
STRATEGIES = {  # with the replicas of each
    "one_device": (1, lambda: tf.distribute.OneDeviceStrategy("/cpu:1")),
    "mirrored": (2, lambda: tf.distribute.MirroredStrategy(TWO_CPUS)),
    "central_storage": (2, lambda: tf.distribute.experimental.CentralStorageStrategy(TWO_CPUS, "/cpu:0")),
}


def main() -> None:
    """Trains and evaluates 10 steps each, and prints how far that is from what it is by hand."""
    num_replicas, make_strategy = STRATEGIES[sys.argv[1]]
    strategy, replicas = make_strategy(), []

    def input_fn(input_context: Any = None) -> Any:
        replicas.append(input_context.num_replicas_in_sync if input_context else 1)
        return tf.data.Dataset.from_tensors(({"feats": [1.0]}, [1.0])).repeat(COPIES).batch(BATCH_SIZE)

    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(
            model_dir=folder,
            train_distribute=strategy,
            eval_distribute=strategy,
            # else the session has one CPU, and two replicas wait for ever
            session_config=tf.compat.v1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True),
        )
        estimator = tf.estimator.LinearRegressor(
            feature_columns=[tf.feature_column.numeric_column("feats")],
            optimizer=lambda: tf.keras.optimizers.legacy.SGD(LEARNING_RATE),  # one for each replica
            config=config,
        )
        estimator.train(input_fn, steps=STEPS)
        metrics = estimator.evaluate(input_fn, steps=STEPS)
        weight = estimator.get_variable_value("linear/linear_model/feats/weights").item()
        bias = estimator.get_variable_value("linear/linear_model/bias_weights").item()
    expected, expected_loss = by_hand()
    differences = (weight - expected, bias - expected, float(metrics["average_loss"]) - expected_loss)
    distributed = replicas == [num_replicas] * 2 and int(metrics["global_step"]) == STEPS
    print(json.dumps({"distributed": distributed, "difference": max(map(abs, differences))}))


def by_hand() -> tuple[float, float]:
    """Returns weight (the bias is equal) and loss after the training.

    The model answers weight + bias to 1, and 1 is right. From an error e = 1 - weight - bias the squared
    loss moves each by 2 e times the learning rate.
    """
    weight = 0.0
    for _step in range(STEPS):
        weight += LEARNING_RATE * 2 * (1 - 2 * weight)
    return weight, (1 - 2 * weight) ** 2


if __name__ == "__main__":
    main()
