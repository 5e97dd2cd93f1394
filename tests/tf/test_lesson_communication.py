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
def test_the_ten_lines_find_what_collectives_finds(collectives_that_ran, place, every):
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


def test_a_relayout_or_an_assignment_of_three_axes_forgets_a_move():
    eight = np.arange(8, dtype="float32").reshape(2, 2, 2)
    tensor, layout = shard(eight, over(CUBE, "z", "x", ".")), over(CUBE, "y", ".", "x")
    (ran,) = collectives(dtensor.relayout, tensor, layout)
    assert (str(ran.kind), ran.mesh_dims) == ("all-to-all", ("x",))
    variable = dtensor.DVariable(shard(0 * eight, layout))
    variable.assign(tensor)
    assert np.sum(to_numpy(variable) == eight) == 4
