"""The training loop as TensorFlow's public DTensor tutorial has it, to be compared with the course's own.

It packs every batch on the host, runs one step a call, reads a metric after each step and moves a text
progress bar. Its packing is the right one: the tutorial's own fails on some meshes.
"""

from __future__ import annotations

import itertools
from typing import Any

from course_lib.data.examples import Examples
from course_lib.models.sentiment import EPSILON, MLP
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402


def pack_batch(batch: Any, layout: Any) -> Any:
    """Returns a batch as a DTensor: split along each axis with `tf.split`, one part for each device.

    Source: https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial (repack_batch).
    """
    parts = {(): batch}
    for axis in range(layout.rank):
        parts = {
            (*block, at): part
            for block, whole in parts.items()
            for at, part in enumerate(tf.split(whole, layout.num_shards(axis), axis=axis))
        }
    specs = layout.sharding_specs
    blocks = [
        tuple(0 if name == dtensor.UNSHARDED else location[name] for name in specs)
        for location in layout.mesh.local_device_locations()
    ]
    return dtensor.pack([parts[block] for block in blocks], layout)


def logits_of(model: MLP, inputs: Any) -> Any:
    """Returns the logits `[batch, classes] global`, normalised as the tutorial does: two all-reduces."""
    hidden = tf.nn.relu(tf.matmul(inputs, model.hidden_weight) + model.hidden_bias)
    normal = tf.nn.batch_normalization(hidden, *tf.nn.moments(hidden, [0]), None, None, EPSILON)
    return tf.matmul(normal, model.logits_weight) + model.logits_bias


@tf.function
def train_step(model: MLP, inputs: Any, labels: Any, learning_rate: float) -> dict[str, Any]:
    """Updates the model with one batch and returns its mean loss and accuracy."""
    with tf.GradientTape() as tape:
        logits = logits_of(model, inputs)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):  # noqa: B905
        variable.assign_sub(learning_rate * gradient)
    hits = tf.cast(tf.equal(tf.argmax(logits, axis=-1), labels), tf.float32)
    return {"loss": loss / inputs.shape[0], "accuracy": tf.reduce_mean(hits)}


def train(
    model: MLP, examples: Examples, layouts: dict[str, Any], num_steps: int, batch_size: int = 64
) -> list[float]:
    """Trains for some steps, writing a progress bar to stdout, and returns the loss of each.

    The batches come ready from `tf.data`: the tutorial's also makes the features in every epoch, which is
    not what is compared here.

    Args:
        model: the model.
        examples: the training set.
        layouts: the real layouts of "inputs" and "labels".
        num_steps: the number of steps.
        batch_size: the number of examples in a global batch.
    """
    size = len(examples) // batch_size * batch_size
    features = examples.features[:size].reshape(-1, batch_size, examples.features.shape[1])
    labels = examples.labels[:size].reshape(-1, batch_size)
    batches = tf.data.Dataset.from_tensor_slices((features, labels)).repeat()
    bar = tf.keras.utils.Progbar(num_steps, stateful_metrics=[])
    losses = []
    for step, batch in enumerate(itertools.islice(batches, num_steps)):
        packed = [
            pack_batch(part, layouts[name]) for name, part in zip(("inputs", "labels"), batch, strict=True)
        ]
        metrics = {name: float(value) for name, value in train_step(model, *packed, 1e-2).items()}
        bar.update(step + 1, values=metrics.items(), finalize=False)
        losses.append(metrics["loss"])
    return losses
