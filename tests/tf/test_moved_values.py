"""The weekly drill's hook moves every initial value a little, and equal ones equally."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IN_A_FRESH_PROCESS = """
import course_lib
course_lib.setup(devices=2)
tf = course_lib.start_tensorflow()
import numpy as np
from tensorflow.experimental import dtensor
from course_lib import MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.devices.dtensor import pack, to_numpy
value = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")
layout = LayoutSpec(["x", "unsharded"], MeshSpec([("x", 2)]))
dense = tf.keras.layers.Dense(4, kernel_initializer=lambda shape, dtype: tf.constant(value))
dense.build((None, 8))
for variable in (tf.Variable(value), tf.Variable(lambda: tf.constant(value)), dense.kernel):
    print(abs(variable.numpy() / value - 1).max())
print(abs(to_numpy(dtensor.DVariable(pack(value, layout))) / value - 1).max())
"""


@pytest.mark.drill_all
def test_the_hook_moves_the_variables_of_tensorflow_keras_and_dtensor():
    path = [str(ROOT / "tests" / "drill" / "moved_values"), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    changes = [float(line) for line in done.stdout.split()]
    assert len(changes) == 4
    assert all(1e-7 < change <= 1.1e-6 for change in changes), changes
