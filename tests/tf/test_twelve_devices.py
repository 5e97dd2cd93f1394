"""What a process of twelve devices shows, which takes seconds to start: plans, relayouts and an abort."""

import json
import subprocess
import sys

import pytest

from tests.kernels import ROOT

# What the process says: of plans, then of relayouts; then it aborts a collective, really: on twelve in a
# row an all-to-all, which the library refuses, fails soon or late.
PROGRAM = """
import course_lib
course_lib.setup(devices=12, language="en")
import itertools
import json
import numpy as np
from course_lib import CourseError, MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib import dtensor as ours
from course_lib.aborts import explaining_aborts
from tests.tf import plan_runs

print(json.dumps(plan_runs.report(plan_runs.mesh_of("4x3"), 4)))
print("---")

line = MeshSpec([("p", 12)])

def check(num_axes, through=lambda function: function):
    value = np.arange(24.0**num_axes).reshape([24] * num_axes)
    whole = [UNSHARDED] * num_axes
    layouts = [LayoutSpec(whole[:at] + ["p"] + whole[at + 1 :], line) for at in range(num_axes)]
    for source, target in itertools.product([LayoutSpec(whole, line), *layouts], repeat=2):
        try:
            moved = through(lambda tensor: ours.relayout(tensor, target))(ours.pack(value, source))
        except CourseError as error:
            print(f"{source} to {target}: {error}")
            continue
        for seen, expected in zip(ours.unpack(moved), target.of(value.shape).split(value)):
            assert np.array_equal(seen, expected), (source, target)

check(1)
check(2)
check(3)
check(2, ours.tf.function)
split_over_all = ours.pack(np.arange(24.0), LayoutSpec(["p"], line))
print(ours.to_numpy(ours.tf.function(ours.tf.reduce_sum)(split_over_all)))
print("---")

twelve = ours.dtensor.create_mesh([("p", 12)], devices=[f"CPU:{number}" for number in range(12)])
rows, columns = (ours.dtensor.Layout(specs, twelve) for specs in (["p", UNSHARDED], [UNSHARDED, "p"]))
part = ours.tf.zeros((2, 24))

def abort():
    for _time in range(200):
        ours.unpack(ours.dtensor.relayout(ours.dtensor.pack([part] * 12, rows), columns))

grid = MeshSpec([("x", 2), ("y", 2)])
split, whole = LayoutSpec(["x"], grid), LayoutSpec([UNSHARDED], grid)
total = explaining_aborts()(ours.tf.function(ours.tf.reduce_sum))
later = [
    lambda: ours.unpack(ours.relayout(ours.pack(np.zeros(4), split), whole)),
    lambda: ours.unpack(total(ours.pack(np.zeros(4), split))),
] * 3
for what in [explaining_aborts()(abort), *later]:
    try:
        print("no error", what())
    except CourseError as error:
        print(isinstance(error.__cause__, ours.tf.errors.OpError), error.problem, error.cure)
print(ours.to_numpy(ours.pack(np.arange(4.0), split)).tolist())
"""


@pytest.fixture(scope="module")
def said():
    """Returns the lines that the process prints: of plans, of relayouts, of the abort."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    return [part.splitlines() for part in done.stdout.split("---\n")]


def test_some_plans_on_4x3_run_exactly_if_they_are_accepted(said):
    (report,) = map(json.loads, said[0])
    assert report["disagreements"] == []
    assert report["accepted"] >= 1
    assert report["refused"] >= 1


def test_on_12_cpus_in_a_row_all_is_right_but_the_all_to_all_and_that_is_refused(said):
    why = [
        "an all-to-all over 'p', among 12 CPUs.",
        "  Allowed: all-to-all among at most 11 CPUs",
        "  What to do: Split the dimension in two, such as 4 × 3 in place of 12. TensorFlow would mix up the"
        " data that so many CPUs send each other.",
    ]
    assert said[1] == [
        "[p, unsharded] to [unsharded, p]: It would take " + why[0],
        *why[1:],
        "[unsharded, p] to [p, unsharded]: It would take " + why[0],
        *why[1:],
        "276.0",
    ]


def test_after_a_collective_was_aborted_every_later_one_says_to_restart_the_kernel(said):
    *errors, still_packed = said[2]
    assert len(errors) == 7
    for line in errors:
        assert line.startswith("True The devices can no longer send each other data"), line
        assert "Restart the kernel" in line
    assert still_packed == "[0.0, 1.0, 2.0, 3.0]"
