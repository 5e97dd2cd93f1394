"""What `mesh_and_layout` says of TensorFlow and does not show, held against NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib.devices.dtensor import tf

FREE = dtensor.UNSHARDED
WHOLE = np.arange(24, dtype="float32").reshape(6, 4)
MAKES_A_LAYOUT = """
from tensorflow.experimental import dtensor
layout = dtensor.Layout(["x"], dtensor.create_mesh([("x", 1)], devices=["CPU:0"]))
"""


@pytest.fixture(scope="module")
def mesh():
    return dtensor.create_mesh([("x", 3), ("y", 2)], devices=[f"CPU:{device_id}" for device_id in range(6)])


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
