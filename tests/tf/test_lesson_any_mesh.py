"""What `any_mesh` says of checkpoints and does not show."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

import course_lib
from course_lib import shard
from tests.course import program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
GRID = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
COLUMNS = dtensor.Layout([WHOLE, "model"], GRID)


def test_devices_0_and_1_write_the_two_halves_and_no_mesh_is_in_the_files(tmp_path):
    parts = [tf.fill([8, 12], float(device)) for device in range(8)]  # as if copies were unequal
    path = tf.train.Checkpoint(v=dtensor.DVariable(dtensor.pack(parts, COLUMNS))).write(
        str(tmp_path / "here")
    )
    saved = tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    assert saved.shape == (8, 24)
    assert saved[0, ::12].tolist() == [0, 1]
    for file in tmp_path.iterdir():
        assert b"batch" not in file.read_bytes()
        assert b"model" not in file.read_bytes()


def test_on_one_device_another_shape_is_refused_at_once(tmp_path):
    path = tf.train.Checkpoint(v=dtensor.DVariable(shard(np.ones((8, 8)), COLUMNS))).write(
        str(tmp_path / "here")
    )
    with pytest.raises(ValueError, match="incompatible tensor with shape"):
        tf.train.Checkpoint(v=tf.Variable(np.ones((8, 4)))).read(path)


def test_a_renamed_weight_and_another_shape_are_named_and_without_the_guard_restore_refuses(
    tmp_path, monkeypatch
):
    lesson = program("any_mesh")
    list(lesson.train(lesson.LAYOUTS["model"], str(tmp_path), 1))
    monkeypatch.setattr(lesson, "values", {"V1": np.zeros((1200, 48), "float32")})
    with pytest.raises(ValueError, match="V1 is missing in"):
        next(lesson.train(dict.fromkeys(["x", "y", "V1"]), str(tmp_path), 1))
    wider = {"W1": (1200, 96), "b1": (96,), "W2": (96, 2), "b2": (2,)}
    monkeypatch.setattr(lesson, "values", {name: np.zeros(wider[name], "float32") for name in wider})
    with pytest.raises(ValueError, match="W1 has shape"):
        next(lesson.train(lesson.LAYOUTS["model"], str(tmp_path), 1))
    # `restore` waits for the values, and `read` does not
    with pytest.raises(tf.errors.OpError, match="does not match the shape"):
        tf.train.Checkpoint(model=lesson.Model(lesson.LAYOUTS["model"])).restore(lesson.newest(str(tmp_path)))
    with contextlib.suppress(tf.errors.OpError):
        lesson.Model(lesson.LAYOUTS["model"]).means["b2"].read_value()  # what is left of that error


MEMORY = """
import sys, threading, time
import psutil
import tensorflow as tf
from tensorflow.experimental import dtensor

task, dims, entries, path = sys.argv[1], eval(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
layout = dtensor.Layout(entries, dtensor.create_mesh(dims, device_type="CPU"))
part = [8192 // layout.num_shards(axis) for axis in (0, 1)]
saved = tf.train.Checkpoint(v=dtensor.DVariable(dtensor.pack([tf.ones(part) for _ in range(8)], layout)))
small = tf.train.Checkpoint(v=dtensor.DVariable(dtensor.pack([tf.ones([8, 8])] * 8, layout)))
small.read(small.write(path + "-small"))  # what is needed once
time.sleep(1)
process, over = psutil.Process(), threading.Event()
before = peak = process.memory_info().rss

def watch():
    global peak
    while not over.wait(5e-4):
        peak = max(peak, process.memory_info().rss)

watcher = threading.Thread(target=watch)
watcher.start()
if task == "write":
    saved.write(path)
elif task == "read alone":
    index = ":".join(f"0,{size}" for size in part)
    key = "v/.ATTRIBUTES/VARIABLE_VALUE"
    tf.raw_ops.RestoreV2(
        prefix=path, tensor_names=[key], shape_and_slices=[f"8192 8192 {index}"], dtypes=[tf.float32]
    )
else:
    saved.read(path).assert_consumed()
    dtensor.unpack(saved.v.value())[7][0].numpy()  # waits for it
over.set()
watcher.join()
print((peak - before) / 1e6)
"""


def extra_megabytes(task, dims, entries, path):
    command = [sys.executable, "-c", MEMORY, task, str(dims), str(entries), str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)


@pytest.mark.drill
def test_a_device_needs_its_new_part_and_one_stored_block_and_never_the_matrix_of_268_megabytes(tmp_path):
    grid, path, part = [("batch", 4), ("model", 2)], tmp_path / "large", 33.6
    assert extra_megabytes("write", grid, ["batch", "model"], path) < 2 * part
    assert extra_megabytes("read", grid, ["batch", "model"], path) < 8 * part
    for dims, entries in (
        ([("batch", 2), ("feature", 2), ("model", 2)], ["feature", "model"]),
        ([("batch", 8)], [WHOLE, "batch"]),
    ):
        assert extra_megabytes("read", dims, entries, path) < 8 * 2 * part
    alone = extra_megabytes("read alone", [("batch", 8)], [WHOLE, "batch"], path)
    assert part < alone < 4 * part  # of 8
