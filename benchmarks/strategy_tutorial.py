"""The training loop of TensorFlow's public tutorial on strategies, to be compared with the course's.

Written anew from what the tutorial does: batches shuffled and split by `tf.data`, one `strategy.run` a batch
in a compiled function that Python calls, a metric that each replica updates, and losses added up outside
without reading them. What differs is said where it does (docs/decisions/benchmarks.md).

Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Training loop).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.data.examples import Examples
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()


def training(strategy: Any, model: Any, examples: Examples, batch_size: int) -> Callable[[], float]:
    """Returns a function that trains for an epoch and returns the mean loss of its batches.

    Args:
        strategy: given its devices; the tutorial's finds them itself, which is one where there is no GPU.
        model: made in the strategy's scope; it gives logits.
        examples: the training set; the batches are to be full.
        batch_size: the number of examples in a global batch.
    """
    train_step = _step(strategy, model, batch_size)
    sliced = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
    batches = sliced.shuffle(len(examples)).batch(batch_size)
    distributed = strategy.experimental_distribute_dataset(batches)

    def epoch() -> float:
        total, num_batches = 0.0, 0
        for batch in distributed:
            total += train_step(batch)
            num_batches += 1
        return float(total / num_batches)

    return epoch


def _step(strategy: Any, model: Any, batch_size: int) -> Callable[[Any], Any]:
    with strategy.scope():
        losses_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)  # Keras 3 makes no variables while replicas run

    def on_replica(batch: Any) -> Any:
        images, labels = batch
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            losses = losses_of(labels, predictions)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=batch_size)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        accuracy.update_state(labels, predictions)
        return loss

    @tf.function
    def step(batch: Any) -> Any:
        per_replica = strategy.run(on_replica, args=(batch,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)

    compiled: Callable[[Any], Any] = step
    return compiled
