"""`supported`: what DTensor makes of a reader's own function."""

from __future__ import annotations

import time

import numpy as np
import pytest

import course_lib
from course_lib import i18n, processes

course_lib.setup(devices=8)
tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

from course_lib import shard, supported  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    mesh = dtensor.create_mesh([("x", 8)], devices=[f"CPU:{device}" for device in range(8)])
    return shard(
        np.arange(24, dtype="float32").reshape(8, 3),
        dtensor.Layout(["x", "unsharded"], mesh),
    )


def test_a_right_a_wrong_and_a_deadly_function(rows):
    shift = 2.0  # a reader's function may use what stands around it
    right = supported(lambda x: tf.reduce_sum(x + shift, axis=0), rows)
    assert str(right) == "eager: right | [unsharded]\ntf.function: right | [unsharded] | all-reduce x"
    assert str(supported(lambda x: x[::-1], rows)["tf.function"]).startswith("silently wrong | 24 of 24")
    number_types = supported(lambda x: x + tf.cast(x, tf.float64), rows)
    assert [each.verdict for each in number_types.values()] == ["dead", "refused"]


def test_its_processes_speak_the_readers_language_and_end_where_the_function_hangs(rows, monkeypatch):
    i18n.set_language("ja")
    assert "'ja'" in supported(lambda x: int(i18n.language()), rows)["eager"].message
    monkeypatch.setitem(processes.run.__kwdefaults__, "seconds", 1)
    assert supported(lambda x: time.sleep(600), rows)["eager"].verdict == "dead"
