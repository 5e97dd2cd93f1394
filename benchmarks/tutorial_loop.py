"""The model and the training loop of TensorFlow's public DTensor tutorial, to be compared with the course's.

Written anew from what the tutorial does, operation for operation: a layout for each weight by hand, mean and
variance by `tf.nn.moments`, a batch packed on the host for each step, one step a call, and a text progress
bar that is handed the metrics as they come, as DTensors. What differs is said where it does, and never costs
the tutorial time (docs/decisions/benchmarks.md).

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from course_lib.data.examples import Examples
from course_lib.runtime import start_tensorflow

start_tensorflow()
import tensorflow as tf  # noqa: E402
from tensorflow.experimental import dtensor  # noqa: E402

LEARNING_RATE, BATCH_SIZE = 1e-2, 64
WHOLE = dtensor.UNSHARDED
# The mesh dimensions of each of the three, then how the first weight, the second, and a batch are split.
SCHEMES = {
    "data": ([("batch", 8)], [WHOLE, WHOLE], [WHOLE, WHOLE], ["batch", WHOLE]),
    "model": ([("batch", 4), ("model", 2)], [WHOLE, "model"], ["model", WHOLE], ["batch", WHOLE]),
    "spatial": (
        [("batch", 2), ("feature", 2), ("model", 2)],
        ["feature", "model"],
        ["model", WHOLE],
        ["batch", "feature"],
    ),
}


class Dense(tf.Module):
    """A weight in its layout, and a bias in that of the weight's last axis."""

    def __init__(self, num_inputs: int, units: int, layout: Any, seed: list[int]) -> None:
        super().__init__()
        normal, zeros = tf.function(tf.random.stateless_normal), tf.zeros
        weight = dtensor.call_with_layout(normal, layout, shape=[num_inputs, units], seed=seed)
        self.weight = dtensor.DVariable(weight)
        self.bias = dtensor.DVariable(dtensor.call_with_layout(zeros, layout.delete([0]), [units]))

    def __call__(self, inputs: Any) -> Any:
        """Returns `[batch, units] global`."""
        return tf.matmul(inputs, self.weight) + self.bias


class TutorialMLP(tf.Module):
    """Two dense layers, by default with batch normalisation between them, two layouts given by hand."""

    def __init__(self, hidden: Any, logits: Any, *, normalised: bool) -> None:
        super().__init__()
        self.normalised = normalised
        self.hidden, self.logits = Dense(1200, 48, hidden, [0, 1]), Dense(48, 2, logits, [0, 2])

    def __call__(self, inputs: Any) -> Any:
        """Returns the logits `[batch, classes] global`; normalising over the batch takes two sums over it."""
        hidden = tf.nn.relu(self.hidden(inputs))
        if not self.normalised:
            return self.logits(hidden)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        return self.logits(tf.nn.batch_normalization(hidden, mean, variance, 0.0, 1.0, 1e-5))


def pack_batch(batch: Any, layout: Any) -> Any:
    """Returns a batch as a DTensor, cut with `tf.split` along each axis that is split.

    `num_shards` stands for the tutorial's `layout.shape`, the shape of the mesh: the same in its schemes.
    """
    sharded = [(axis, name) for axis, name in enumerate(layout.sharding_specs) if name != WHOLE]
    parts = batch
    for axis, _name in sharded:
        parts = tf.nest.map_structure(
            lambda part, axis=axis: tf.split(part, layout.num_shards(axis), axis=axis), parts
        )
    components = []
    for location in layout.mesh.local_device_locations():
        part = parts
        for _axis, name in sharded:
            part = part[location[name]]
        components.append(part)
    return dtensor.pack(components, layout)


@tf.function
def train_step(model: TutorialMLP, inputs: Any, labels: Any, learning_rate: float) -> dict[str, Any]:
    """Updates the model with one batch, and returns its mean loss and accuracy."""
    with tf.GradientTape() as tape:
        logits = model(inputs)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    parameters = model.trainable_variables
    for parameter, gradient in zip(parameters, tape.gradient(loss, parameters), strict=True):
        parameter.assign_sub(learning_rate * gradient)
    misses = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int64) != labels, tf.float32)
    num_rows = inputs.shape[0]
    return {"loss": loss / num_rows, "accuracy": 1.0 - tf.reduce_sum(misses) / num_rows}


def training(scheme: str, examples: Examples, *, normalised: bool = True) -> Callable[[int], float]:
    """Returns a function that trains some steps, writing the bar to stdout, and returns the last loss.

    The batches come ready from `tf.data`; the tutorial's also makes the features anew in every epoch.

    Args:
        scheme: one of `SCHEMES`.
        examples: the training set, taken in its order, again and again.
        normalised: whether the model has the tutorial's batch normalisation.
    """
    dims, *specs = SCHEMES[scheme]
    mesh = dtensor.create_mesh(dims, devices=[f"CPU:{at}" for at in range(8)])
    hidden, logits, of_inputs, of_labels = (dtensor.Layout(each, mesh) for each in (*specs, ["batch"]))
    model = TutorialMLP(hidden, logits, normalised=normalised)
    sliced = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
    batches = iter(sliced.batch(BATCH_SIZE, drop_remainder=True).repeat())

    def train(num_steps: int) -> float:
        bar = tf.keras.utils.Progbar(num_steps, stateful_metrics=[])
        metrics: dict[str, Any] = {"epoch": 0}
        for step, (inputs, labels) in enumerate(itertools.islice(batches, num_steps)):
            packed = pack_batch(inputs, of_inputs), pack_batch(labels, of_labels)
            metrics.update(train_step(model, *packed, LEARNING_RATE))
            bar.update(step, values=metrics.items(), finalize=False)
        bar.update(num_steps, values=metrics.items(), finalize=True)
        return float(metrics["loss"])

    return train
