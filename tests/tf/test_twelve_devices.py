"""What a collective that was aborted leaves of a process."""

import subprocess
import sys

import pytest

from tests.kernels import ROOT

# Aborts a collective, really: on twelve devices in a row an all-to-all fails soon or late.
PROGRAM = """
import course_lib
course_lib.setup(devices=12, language="en")
import numpy as np
from course_lib import CourseError, MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.devices import dtensor as ours
from course_lib.exercises.devices import on_devices

twelve = ours.dtensor.create_mesh([("p", 12)], devices=[f"CPU:{number}" for number in range(12)])
rows, columns = (ours.dtensor.Layout(specs, twelve) for specs in (["p", UNSHARDED], [UNSHARDED, "p"]))
part = ours.tf.zeros((2, 24))

def abort():
    for _time in range(200):
        ours.unpack(ours.dtensor.relayout(ours.dtensor.pack([part] * 12, rows), columns))

grid = MeshSpec([("x", 2), ("y", 2)])
split = LayoutSpec(["x"], grid)
total = ours.tf.function(ours.tf.reduce_sum)
later = lambda: ours.unpack(total(ours.pack(np.zeros(4), split)))
for what in [abort] + [later] * 6:
    try:
        with on_devices():
            print("no error", what())
    except CourseError as error:
        print(isinstance(error.__cause__, ours.tf.errors.OpError), error.problem, error.cure)
print(ours.to_numpy(ours.pack(np.arange(4.0), split)).tolist())
"""


@pytest.mark.drill_all
def test_after_a_collective_was_aborted_every_later_one_says_to_restart_the_kernel():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    *errors, still_packed = done.stdout.splitlines()
    assert len(errors) == 7
    for line in errors:
        assert line.startswith("True The devices can no longer send each other data"), line
        assert "Restart the kernel" in line
    assert still_packed == "[0.0, 1.0, 2.0, 3.0]"
