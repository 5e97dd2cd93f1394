"""What the course shows of TensorFlow's own objects: `show`, `compare`, `shard`, `collectives`, `explain`."""

import numpy as np
import pytest

import course_lib
from course_lib import CourseError, collectives, compare, explain, shard, show
from course_lib.exercises import devices

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")

MESH = dtensor.create_mesh([("x", 4), ("y", 2)], device_type="CPU")
WHOLE = dtensor.UNSHARDED
ROWS = dtensor.Layout(["x", WHOLE], MESH)
COLUMNS = dtensor.Layout([WHOLE, "x"], MESH)
NUMBERS = np.arange(64, dtype="float32").reshape(8, 8)


def test_compare_finds_the_devices_that_hold_something_else():
    parts = tf.split(NUMBERS, 4)
    swapped = dtensor.pack([parts[(place["x"] + 1) % 4] for place in MESH.local_device_locations()], ROWS)
    assert compare(NUMBERS, shard(NUMBERS, ROWS)).agrees
    assert compare(NUMBERS, swapped).wrong_devices == tuple(range(8))
    assert compare(NUMBERS, shard(NUMBERS[:4], ROWS)).wrong_devices == tuple(range(8))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_explain_puts_rules_beside_reality(dtype):
    left, right = shard(NUMBERS.astype(dtype), ROWS), shard(NUMBERS.astype(dtype), COLUMNS)
    assert explain(tf.matmul, left, right).agrees
    assert explain(dtensor.relayout, left, COLUMNS).agrees
    assert len(explain(tf.matmul, left, right).observed) == 2


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: show(tf.ones([2])), "not laid out"),
        (lambda: show(ROWS, (6, 8)), "does not split"),
        (lambda: compare(NUMBERS, NUMBERS), "not laid out"),
        (lambda: shard(NUMBERS, ["x", WHOLE]), "not a layout"),
        (lambda: collectives(tf.matmul, NUMBERS, NUMBERS), "No argument"),
        (lambda: explain(tf.add, NUMBERS, NUMBERS), "no rules"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_error(action, words):
    with pytest.raises(CourseError, match=words):
        action()


def test_after_a_collective_was_aborted_every_later_error_says_to_restart_the_kernel(monkeypatch):
    monkeypatch.setattr(devices, "_collectives", {"aborted": False})
    for message in ("Collective ops is aborted by: no such group", "whatever a later one says"):
        with pytest.raises(CourseError, match="Restart the kernel"), devices.on_devices():
            raise tf.errors.InternalError(None, None, message)
