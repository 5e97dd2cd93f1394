"""The collectives of a function are those that run, and looking at them changes nothing."""

import numpy as np
import pytest

import course_lib
from course_lib import MeshSpec, collectives
from course_lib.devices import dtensor
from course_lib.devices.graphs import relayout
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor as tensorflows  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")

GRID = MeshSpec([("x", 4), ("y", 2)])
ROWS = LayoutSpec(["x", UNSHARDED], GRID)
ONES = np.ones((8, 16), "float32")


def rows_of(values=ONES):
    return dtensor.pack(values, ROWS)


def seen(function, *arguments) -> list[str]:
    return list(map(str, collectives(function, *arguments)))


def test_calls_and_loops_are_looked_into():
    inner = tf.function(lambda tensor: tf.reduce_sum(tensor, 0))

    def outer(tensor):
        def turn(step, total):
            return step + 1, total + tf.reduce_sum(tensor * tf.cast(step, tf.float32))

        _end, total = tf.while_loop(lambda step, _total: step < 3, turn, (tf.constant(0), tf.constant(0.0)))
        return inner(tensor), total

    assert sorted(seen(outer, rows_of())) == ["all-reduce over x, 4 bytes", "all-reduce over x, 64 bytes"]


def test_variables_keep_their_values_also_those_that_a_called_function_writes():
    direct, called, passed = (tensorflows.DVariable(rows_of()) for _each in range(3))
    double = tf.function(lambda: called.assign_add(called))

    def step(given):
        double()
        direct.assign_add(direct)
        given.assign_add(given)
        return tf.reduce_sum(direct)

    assert seen(step, passed) == ["all-reduce over x, 4 bytes"]
    for variable in (direct, called, passed):
        assert np.array_equal(dtensor.to_numpy(variable), ONES)


def test_values_that_differ_from_numpys_are_told(monkeypatch):
    right = dtensor.unpack
    monkeypatch.setattr(dtensor, "unpack", lambda tensor: [part + np.float32(1) for part in right(tensor)])
    compared = relayout(ROWS.of(ONES.shape), LayoutSpec([UNSHARDED] * 2, GRID))
    assert compared.observed == compared.expected
    assert not compared.values_agree
    assert not compared.agrees
