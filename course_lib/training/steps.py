"""What TensorFlow runs: one training step, many steps in one call, and evaluation, on any layout."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.dtensor import create_mesh, explaining_aborts, pack, to_numpy
from course_lib.models.sentiment import MLP
from course_lib.runtime import start_tensorflow
from course_lib.training.batches import padded, require_examples

tf = start_tensorflow()

# So many steps run in one call of TensorFlow: enough to make the cost of a call small, and few enough that
# a Stop button answers at once (chosen by trial).
STEPS_PER_CALL = 32
EVALUATION_ROWS = 2048  # moving moments make rows independent, so that these batches can be large


def train_step(model: MLP, inputs: Any, labels: Any, learning_rate: Any) -> tuple[Any, Any]:
    """Updates the model with one batch; returns the summed loss and the number of right answers before that.

    Nothing here says how many devices there are: the layouts of the variables and of the batch do.

    Args:
        model: the model.
        inputs: `[batch, features] global`.
        labels: `[batch] global`.
        learning_rate: of plain gradient descent on the summed loss.
    """
    with tf.GradientTape() as tape:
        logits, moments = model.logits_and_moments(inputs)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_sum(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):  # noqa: B905 (AutoGraph's zip is old)
        variable.assign_sub(learning_rate * gradient)
    model.track(moments)
    return loss, _count_hits(logits, labels, tf.ones_like(losses))


@explaining_aborts()
def train_steps(model: MLP, *arguments: Any) -> tuple[Any, Any]:
    """Returns what `_train_steps` does, compiled once for each model.

    Now and then TensorFlow gives the loop of a newly compiled function the name of an older one, and refuses
    it before anything ran; compiled again it gets another name (docs/decisions/compiled-again.md).

    Args:
        model: the model.
        *arguments: the others of `_train_steps`.
    """
    for attempt in range(_MOST_COMPILATIONS):
        try:
            losses, hits = _compiled.setdefault(model, tf.function(_train_steps))(model, *arguments)
            break
        except tf.errors.InvalidArgumentError as error:
            name_is_taken = "a different function with the same name already exists" in str(error)
            if not name_is_taken or attempt == _MOST_COMPILATIONS - 1:
                raise
            del _compiled[model]
    return losses, hits


_MOST_COMPILATIONS = 4
_compiled: WeakKeyDictionary[MLP, Any] = WeakKeyDictionary()


def _train_steps(model: MLP, inputs: Any, labels: Any, num_steps: Any, learning_rate: Any) -> tuple[Any, Any]:
    """Returns the losses and hits, `[stack] global` each, of training on the first batches of a stack.

    Each turn of the loop writes the variables once, at its end: a function that wrote a variable and then
    read it could be given the old value (docs/decisions/one-update-an-iteration.md).

    Args:
        model: the model.
        inputs: `[stack, batch, features] global`.
        labels: `[stack, batch] global`.
        num_steps: on how many batches to train; int16, since DTensor compiles small int32 and float32
            inputs into the function, and compiles again when one changes.
        learning_rate: as for `train_step`; float64 for the same reason.
    """
    rate = tf.cast(learning_rate, tf.float32)
    batch = tf.range(inputs.shape[0])
    losses, hits = tf.zeros(inputs.shape[:1]), tf.zeros(inputs.shape[:1])
    for step in tf.range(tf.cast(num_steps, tf.int32)):
        loss, hit = train_step(model, tf.gather(inputs, step), tf.gather(labels, step), rate)
        losses = tf.where(tf.equal(batch, step), loss, losses)
        hits = tf.where(tf.equal(batch, step), hit, hits)
    return losses, hits


@tf.function  # type: ignore[untyped-decorator]
def _evaluate_rows(model: MLP, inputs: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    logits = model.evaluate_logits(inputs)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(weights * losses), _count_hits(logits, labels, weights)


def _count_hits(logits: Any, labels: Any, weights: Any) -> Any:
    hits = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
    return tf.reduce_sum(weights * tf.cast(hits, tf.float32))


@explaining_aborts()
def evaluate(model: MLP, examples: Examples) -> tuple[float, float]:
    """Returns the mean loss and the accuracy over all examples, each counted exactly once.

    Raises:
        CourseError: the model cannot be evaluated on these examples.
    """
    require_examples(examples, model.dims[0], model.dims[2])
    shards = model.plan.batch_shards
    num_rows = min(max(EVALUATION_ROWS // shards, 1), -(-len(examples) // shards)) * shards
    layouts = [model.plan.layouts[name] for name in ("inputs", "labels", "labels")]
    mesh = create_mesh(model.plan.mesh)
    loss, hits = 0.0, 0.0
    for batch in padded(examples, num_rows):
        arrays: tuple[npt.NDArray[Any], ...] = batch
        sums = _evaluate_rows(model, *(pack(*pair, mesh) for pair in zip(arrays, layouts, strict=True)))
        loss, hits = loss + float(to_numpy(sums[0])), hits + float(to_numpy(sums[1]))
    return loss / len(examples), hits / len(examples)
