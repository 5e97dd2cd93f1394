"""Answers that are TensorFlow's: values, functions, and distributed code that is judged on real devices."""

import numpy as np
import pytest

import course_lib
from course_lib.devices.dtensor import pack, to_layout
from course_lib.exercises import checks
from course_lib.exercises.faults import fault
from course_lib.exercises.judging import drawn, judge
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])


def weighted_mean(losses, weights):
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))


@checks.exercise("predictions-mean-loss", right=weighted_mean)
def mean_loss(answer):
    """An exercise on arrays, to be answered with functions of NumPy and of TensorFlow."""
    cases = drawn(lambda random: (random.random(4, "float32"), random.integers(0, 2, 4).astype("float32")))
    misconceptions = {lambda losses, weights: losses.mean(): "the padding counts too"}
    return judge(answer, weighted_mean, cases, misconceptions=misconceptions)


def test_a_shape_and_sharded_tensors_are_values():
    rows = pack(np.arange(8.0), LayoutSpec(["model"], TWO_BY_FOUR))
    assert checks.same(tf.TensorShape([4, 8]), (4, 8))
    assert checks.same(rows, tuple(range(8)))
    assert checks.same(dtensor.DVariable(rows), tuple(range(8)))
    assert not checks.same(rows, tuple(range(1, 9)))
    assert checks.same(to_layout(LayoutSpec(["model"], TWO_BY_FOUR)), LayoutSpec(["model"], TWO_BY_FOUR))
    assert not checks.same(to_layout(LayoutSpec(["batch"], TWO_BY_FOUR)), LayoutSpec(["model"], TWO_BY_FOUR))


@pytest.mark.parametrize(
    "stub", [lambda losses, weights: tf.reduce_sum(...), tf.function(lambda losses, weights: ...)]
)
def test_a_stub_of_tensorflows_is_open(stub):
    assert checks.check("predictions-mean-loss", stub).status is checks.Status.OPEN


def guarded(losses, weights):
    return tf.reduce_sum(losses * weights) / tf.maximum(tf.reduce_sum(weights), 1.0)


def needing_tensors(losses, weights):
    kept = losses[weights > 0].numpy()
    return tf.Variable(kept.mean() if kept.size else 0.0)


def branching(losses, weights):
    if tf.reduce_sum(weights) == 0:
        return 0.0
    return tf.reduce_mean(tf.boolean_mask(losses, weights > 0))


@pytest.mark.parametrize(
    "right",
    [
        guarded,
        tf.function(guarded),
        branching,
        tf.function(branching),
        needing_tensors,
        lambda losses, weights: tf.math.divide_no_nan(
            tf.tensordot(losses, weights, 1), tf.reduce_sum(weights)
        ),
        tf.function(guarded, input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])]),
    ],
)
def test_functions_of_tensorflow_are_judged(right):
    assert repr(checks.check("predictions-mean-loss", right)) == "✓ Right."


def test_arrays_in_a_list_become_tensors_too():
    def total(parts):
        return sum(part.numpy() for part in parts)

    cases = drawn(lambda random: ([random.normal(size=2) for _ in range(8)],), 5)
    assert judge(total, lambda parts: np.sum(parts, axis=0), cases) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (tf.function(lambda losses, weights: tf.reduce_mean(losses)), "the padding counts too"),
        (tf.function(lambda losses, weights: losses @ weights), "in the line"),
        (lambda losses, weights: losses.numpy().nothing, "has no attribute 'numpy'"),
        (lambda losses, weights: tf.zeros(3) + tf.zeros(4), "Incompatible shapes: [3] vs. [4]`"),
    ],
)
def test_mistakes_with_tensorflow_are_told_in_a_line(wrong, said):
    message = checks.check("predictions-mean-loss", wrong).message
    assert said in message
    assert "/job:" not in message
    assert ".py" not in message
    assert len(message) < 700


GRADIENT = np.ones((8, 8), np.float32)


def layout(*entries):
    return LayoutSpec(entries, TWO_BY_FOUR)


@tf.function
def graph_that_adds_unlike_lengths(rows):
    return rows + tf.ones(3)


@tf.function
def graph_of_an_impossible_layout():
    LayoutSpec(["batch", "batch"], TWO_BY_FOUR)


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (
            lambda: graph_that_adds_unlike_lengths(tf.ones(4)),
            "Dimensions must be equal, but are 4 and 3`, in the line `return rows + tf.ones(3)`.",
        ),
        (lambda: tf.function(lambda size: tf.reshape(tf.ones(5), [size]))(tf.constant(6)), "with 5 values"),
        (
            lambda: pack(GRADIENT, layout("batch", "model")) @ pack(GRADIENT, layout("batch", "model")),
            "Contracting dimension for matmul has sharding dimension model for the left input and batch for",
        ),
        (
            lambda: pack(GRADIENT, layout("batch", "model")).numpy(),
            "non-replicated DTensor is not supported.`",
        ),
        (
            graph_of_an_impossible_layout,
            'It raised this in the line `LayoutSpec(["batch", "batch"], TWO_BY_FOUR)`:\n'
            "The mesh dimension 'batch' splits two axes.\n  Allowed: each mesh dimension on one axis",
        ),
    ],
)
def test_the_reason_in_an_error_of_tensorflow_is_told(fails, said):
    with pytest.raises(Exception, match=r"\w") as caught:
        fails()
    assert said in fault(caught.value)
