"""What `mesh_and_layout` says of TensorFlow and does not show, held against NumPy."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib.devices.dtensor import tf
from tests.course import COURSE

FREE = dtensor.UNSHARDED
WHOLE = np.arange(24, dtype="float32").reshape(6, 4)
MAKES_A_LAYOUT = """
from tensorflow.experimental import dtensor
layout = dtensor.Layout(["x"], dtensor.create_mesh([("x", 1)], devices=["CPU:0"]))
"""


@pytest.fixture(scope="module")
def lesson():
    """The solution of the lesson's exercise, and its `join`."""
    cells = {cell.cell_id: cell.source for cell in COURSE.lesson("mesh_and_layout").cells}
    names = {"tf": tf, "np": np, "dtensor": dtensor}
    exec(cells["exercise-cut"], names)
    exec(cells["join"].partition("\n\n\nprint")[0], names)
    return names


@pytest.fixture(scope="module")
def mesh():
    return dtensor.create_mesh([("x", 3), ("y", 2)], devices=[f"CPU:{device_id}" for device_id in range(6)])


def layouts(mesh, rank):
    entries = [*mesh.dim_names, *[FREE] * rank]
    return [
        dtensor.Layout(list(chosen), mesh) for chosen in sorted(set(itertools.permutations(entries, rank)))
    ]


@pytest.mark.parametrize("dims", [[("a", 8)], [("a", 4), ("b", 2)], [("a", 2), ("b", 2), ("c", 2)]])
def test_what_the_lesson_cuts_and_packs_is_what_copy_to_mesh_makes_and_joins_again(lesson, dims):
    grid = dtensor.create_mesh(dims, device_type="CPU")
    for rank in (1, 2, 3):
        array = np.arange(8**rank, dtype="float32").reshape([8] * rank)
        for layout in layouts(grid, rank):
            packed = dtensor.pack(lesson["cut"](array, layout), layout)
            copied = dtensor.copy_to_mesh(array, layout)
            for one, other in zip(dtensor.unpack(packed), dtensor.unpack(copied), strict=True):
                assert np.array_equal(one, other)
            assert np.array_equal(lesson["join"](packed), array)


def test_unlike_replicas_give_one_tensor_three_sums_and_numpy_reads_the_first(mesh):
    unlike = [tf.fill([6, 2], float(device_id)) for device_id in range(6)]
    total = tf.reduce_sum(dtensor.pack(unlike, dtensor.Layout([FREE, "y"], mesh)))
    assert [int(part) for part in dtensor.unpack(total)] == [12, 12, 60, 60, 108, 108]
    assert total.numpy() == 12


@pytest.mark.drill_all
@pytest.mark.parametrize("call", ["dtensor.pack([], layout)", "layout.num_shards(1)"])
def test_no_components_and_an_axis_that_the_layout_lacks_end_a_process(call):
    program = f"{MAKES_A_LAYOUT}print('made', flush=True)\n{call}"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout == "made\n"
    assert done.returncode < 0


def test_single_numbers_few_integers_and_a_captured_array_are_taken_but_another_array_is_not(mesh):
    scalar = dtensor.DVariable(dtensor.copy_to_mesh(np.float32(1), dtensor.Layout([], mesh)))
    scalar.assign(5.0)
    assert float(scalar.numpy()) == 5
    rows = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(["x", FREE], mesh))
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor"):
        rows + WHOLE
    numbers = dtensor.copy_to_mesh(np.arange(6), dtensor.Layout(["x"], mesh))
    assert dtensor.unpack(numbers + np.arange(6))[5].numpy().tolist() == [8, 10]
    assert tf.gather(numbers, tf.zeros(19, "int32")).shape == 19
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor"):
        tf.gather(numbers, tf.zeros(20, "int32"))
    captured = tf.function(lambda tensor: tf.reduce_sum(tensor + WHOLE))(rows)
    assert float(captured.numpy()) == 2 * WHOLE.sum()
