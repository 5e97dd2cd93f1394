"""Predicted collectives are those that TensorFlow runs: kind, mesh dimensions, bytes, order and result."""

import json
import subprocess
import sys

import numpy as np
import pytest

import course_lib
from course_lib.devices import dtensor
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.tf import communication_runs
from tests.tf.communication_runs import mesh_of

tf = course_lib.start_tensorflow()
pytestmark = pytest.mark.usefixtures("optimized")


def test_relayouts_and_products_of_matrices_are_as_predicted():
    assert communication_runs.report(mesh_of("4x2"), 24) == {"cases": 24, "disagreements": []}


def test_a_product_is_what_its_reader_makes_of_it():
    assert communication_runs.report(mesh_of("4x2"), 24, readers=True) == {"cases": 24, "disagreements": []}


@pytest.mark.drill_all
@pytest.mark.parametrize(
    ("mesh", "readers", "cases"),
    [
        ("8", (), 18),
        ("8", ("100",), 27),
        ("4x2", (), 98),
        ("4x2", ("1000",), 343),
        ("2x2x2", (), 338),
        ("2x2x2", ("600",), 600),
        ("2x4", (), 98),
        ("2x4", ("1000",), 343),
        ("5x2", (), 98),
        ("3x3", (), 98),
        ("3x3", ("100",), 100),
        ("9", (), 18),
        ("8x1", (), 98),
    ],
)
def test_all_of_them_are(mesh, readers, cases):
    command = [sys.executable, "-m", "tests.tf.communication_runs", mesh, *readers]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    assert found == {"cases": cases, "disagreements": []}


@pytest.mark.parametrize("first", [(UNSHARDED, UNSHARDED), ("x", UNSHARDED), (UNSHARDED, "x")], ids=str)
def test_the_cure_of_a_refused_reader_works(first):
    mesh = mesh_of("4x2")
    rows, columns = LayoutSpec(["x", UNSHARDED], mesh), LayoutSpec([UNSHARDED, "x"], mesh)
    wanted, numbers = LayoutSpec(["y", UNSHARDED], mesh), np.arange(64, dtype="float32").reshape(8, 8)

    @tf.function
    def multiplied(left, right):
        product = tf.matmul(left, right)
        for layout in (LayoutSpec(first, mesh), wanted):
            product = tf.experimental.dtensor.relayout(product, dtensor.to_layout(layout))
        return product

    product = multiplied(dtensor.pack(numbers, rows), dtensor.pack(numbers, columns))
    assert dtensor.fetch_layout(product) == wanted
    assert np.array_equal(dtensor.to_numpy(product), numbers @ numbers)
