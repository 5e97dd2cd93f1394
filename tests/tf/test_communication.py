"""Predicted collectives are those that TensorFlow runs: kind, mesh dimensions, bytes, order and result."""

import json
import subprocess
import sys

import numpy as np
import pytest

import course_lib
from course_lib import UNSHARDED, LayoutSpec, MeshSpec, dtensor, observed
from tests.tf import communication_runs
from tests.tf.communication_runs import mesh_of

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor as tensorflows  # noqa: E402


@pytest.mark.parametrize(("mesh", "cases"), [("8", 18), ("4x2", 98)])
def test_every_relayout_and_product_of_matrices_is_as_predicted(mesh, cases):
    assert communication_runs.report(mesh_of(mesh)) == {"cases": cases, "disagreements": []}


@pytest.mark.drill
def test_on_three_dimensions_too():
    assert communication_runs.report(mesh_of("2x2x2")) == {"cases": 338, "disagreements": []}


@pytest.mark.drill_all
@pytest.mark.parametrize(("mesh", "cases"), [("2x4", 98), ("5x2", 98), ("3x3", 98), ("9", 18)])
def test_on_other_meshes_too(mesh, cases):
    command = [sys.executable, "-m", "tests.tf.communication_runs", mesh]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    assert found == {"cases": cases, "disagreements": []}


def test_variables_that_the_function_writes_keep_their_values():
    mesh = MeshSpec([("x", 8)])
    variable = tensorflows.DVariable(
        dtensor.pack(np.ones((8, 8), "float32"), LayoutSpec(["x", UNSHARDED], mesh))
    )

    def step():
        variable.assign_add(variable)
        return tf.reduce_sum(variable)

    (seen,) = observed.collectives(step, mesh=mesh)
    assert (seen.kind, seen.mesh_dims, seen.payload_bytes) == ("all-reduce", ("x",), 4)
    assert np.array_equal(dtensor.to_numpy(variable.read_value()), np.ones((8, 8)))
