"""Answers that are TensorFlow's: values, functions, and distributed code that is judged on real devices."""

import numpy as np
import pytest

import course_lib
from course_lib.devices.dtensor import pack, to_layout
from course_lib.exercises.faults import fault
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import NotAnswered, plain
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])


def test_what_tensorflow_made_is_read_as_a_plain_value():
    rows = pack(np.arange(8.0), LayoutSpec(["model"], TWO_BY_FOUR))
    assert plain(tf.TensorShape([4, 8])) == (4, 8)
    assert plain(rows) == plain(dtensor.DVariable(rows)) == tuple(range(8))
    assert plain({"W1": to_layout(LayoutSpec(["model"], TWO_BY_FOUR))}) == {
        "W1": LayoutSpec(["model"], TWO_BY_FOUR)
    }
    assert plain(tf.constant("word")) == b"word"


def doubled(values):
    return 2 * values


@pytest.mark.parametrize("stub", [lambda values: tf.reduce_sum(...), tf.function(lambda values: ...)])
def test_a_stub_of_tensorflows_is_not_answered(stub):
    with pytest.raises(NotAnswered):
        judge(stub, doubled, [Case((np.ones(2),))])


@tf.function
def graph_that_adds_unlike_lengths(rows):
    return rows + tf.ones(3)


@tf.function
def graph_of_an_impossible_layout():
    LayoutSpec(["batch", "batch"], TWO_BY_FOUR)


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda: tf.zeros(3) + tf.zeros(4), "Incompatible shapes: [3] vs. [4]`, in the line"),
        (
            lambda: graph_that_adds_unlike_lengths(tf.ones(4)),
            "Dimensions must be equal, but are 4 and 3`, in the line `return rows + tf.ones(3)`.",
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
