"""What `communication` says of TensorFlow and does not show, and its program beside the library."""

import itertools

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib import collectives, shard, to_numpy
from course_lib.devices.dtensor import no_combining, tf
from tests.course import COURSE


def mesh(*sizes):
    return dtensor.create_mesh(list(zip("xyz", sizes, strict=False)), device_type="CPU")


GRID, CUBE = mesh(4, 2), mesh(2, 2, 2)


def over(place, *entries):
    return dtensor.Layout([dtensor.UNSHARDED if entry == "." else entry for entry in entries], place)


def filled(layout, *shape):
    return shard(np.arange(np.prod(shape), dtype="float32").reshape(shape) % 7, layout)


@pytest.fixture(scope="module")
def collectives_that_ran():
    """The program's function; the program may not make its devices in a process that has some."""
    source = (COURSE.root / "notebooks/plain/communication.py").read_text()
    names = {}
    lines = [line for line in source.splitlines() if not line.startswith(("cpu = ", "tf.config."))]
    exec("\n".join(lines), names)
    return names["collectives_that_ran"]


@pytest.mark.parametrize(("place", "every"), [(GRID, 8), (CUBE, 28)], ids=["4x2", "2x2x2"])
def test_the_program_finds_what_collectives_finds(collectives_that_ran, place, every):
    entries = [".", *place.dim_names]
    specs = [pair for pair in itertools.product(entries, repeat=2) if pair[0] != pair[1] or pair[0] == "."]
    for source, target in list(itertools.product(specs, specs))[1::every]:
        matrix, layout = filled(over(place, *source), 16, 16), over(place, *target)

        def moved_and_summed(matrix, layout=layout):
            return tf.reduce_sum(dtensor.relayout(matrix, layout)), tf.reduce_sum(matrix, axis=0)

        with no_combining():
            found = collectives_that_ran(place, moved_and_summed, matrix)
        ran = collectives(moved_and_summed, matrix)
        assert found == [(str(each.kind), each.mesh_dims, each.payload_bytes) for each in ran]


def square_gradients(left, right):
    with tf.GradientTape() as tape:
        tape.watch([left, right])
        total = left + right
        loss = tf.reduce_mean(total**2)
    return total, tape.gradient(loss, [left, right])


def entries(tensor):
    specs = dtensor.fetch_layout(tensor).sharding_specs
    return ["." if each == dtensor.UNSHARDED else each for each in specs]


@pytest.mark.parametrize(("place", "every"), [(GRID, 2), (CUBE, 9)], ids=["4x2", "2x2x2"])
def test_a_sum_has_the_layout_of_the_rule_and_so_have_both_gradients(place, every):
    names = [".", *place.dim_names]
    specs = [pair for pair in itertools.product(names, repeat=2) if pair[0] != pair[1] or pair[0] == "."]
    for left, right in list(itertools.product(specs, specs))[1::every]:
        twice = {name for name in set(left) & set(right) - {"."} if left.index(name) != right.index(name)}
        rule = [
            "." if twice & {mine, other} else other if mine == "." else mine
            for mine, other in zip(left, right, strict=True)
        ]
        tensors = [filled(over(place, *each), 16, 16) for each in (left, right)]
        total, gradients = tf.function(square_gradients)(*tensors)
        assert [entries(each) for each in (total, *gradients)] == [rule] * 3, (left, right)
        assert np.array_equal(to_numpy(total), sum(map(to_numpy, tensors)))


def test_the_gradient_of_a_relayout_comes_back_in_the_layout_before_it():
    def gradient(tensor):
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            loss = tf.reduce_mean(dtensor.relayout(tensor, over(GRID, "x", ".")) ** 2)
        return tape.gradient(loss, tensor)

    assert entries(tf.function(gradient)(filled(over(GRID, "x", "y"), 16, 16))) == ["x", "y"]
