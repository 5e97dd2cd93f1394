"""Losses, right answers, and the evaluation of a model, each example counted exactly once."""

from __future__ import annotations

from typing import Any

from course_lib.data.examples import Examples
from course_lib.models.sentiment import MLP
from course_lib.runtime import start_tensorflow
from course_lib.training.batches import padded

tf = start_tensorflow()

_ROWS = 2048  # evaluated rows do not see each other, so that these batches can be large


def evaluate(model: MLP, examples: Examples) -> tuple[float, float]:
    """Returns the mean loss and the accuracy over all examples, each counted exactly once."""
    place, spec, shards = model.place, model.spec, model.place.batch_shards
    num_rows = min(max(_ROWS // shards, 1), -(-len(examples) // shards)) * shards
    loss, hits = 0.0, 0.0
    for inputs, labels, weights in padded(examples, num_rows):
        sent = (
            place.send(inputs, spec.inputs),
            place.send(labels, spec.labels),
            place.send(weights, spec.labels),
        )
        sums = [float(place.fetch(total)) for total in _evaluate_rows(model, *sent)]
        loss, hits = loss + sums[0], hits + sums[1]
    return loss / len(examples), hits / len(examples)


def example_losses(logits: Any, labels: Any) -> Any:
    """Returns the cross entropy of each row, `[batch] global`."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def right_answers(model: MLP, logits: Any, labels: Any) -> Any:
    """Returns 1 for each row that is classified rightly and 0 for the others, `[batch] global`.

    Args:
        model: the model; where it splits batch and classes over one mesh dimension, DTensor cannot take the
            largest logit of a row, so that rows are gathered first.
        logits: `[batch, classes] global`.
        labels: `[batch] global`.
    """
    rows = model.place.lay_out(tf.stop_gradient(logits), (*model.spec.labels, "each class"))
    return tf.cast(tf.equal(tf.argmax(rows, axis=-1, output_type=labels.dtype), labels), tf.float32)


@tf.function(autograph=False)  # type: ignore[untyped-decorator]
def _evaluate_rows(model: MLP, inputs: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    logits = model.evaluate_logits(inputs)
    each = example_losses(logits, labels), right_answers(model, logits, labels)
    return tuple(tf.reduce_sum(weights * values) for values in each)
