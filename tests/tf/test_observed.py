"""Products and relayouts on real devices beside their prediction, and what running them leaves behind."""

import numpy as np
import pytest

import course_lib
from course_lib import MeshSpec, dtensor, observed
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED

course_lib.start_tensorflow()
pytestmark = pytest.mark.usefixtures("optimized")

ROW = MeshSpec([("x", 8)])
GRID = MeshSpec([("x", 4), ("y", 2)])


def factors(mesh, left, right, **options):
    return LayoutSpec(left, mesh).of((16, 8), **options), LayoutSpec(right, mesh).of((8, 24), **options)


@pytest.mark.parametrize(
    ("mesh", "left", "right", "seen", "layout"),
    [
        (ROW, ["x", UNSHARDED], [UNSHARDED] * 2, [], ["x", UNSHARDED]),
        (ROW, [UNSHARDED, "x"], ["x", UNSHARDED], [(("x",), 16 * 24 * 4)], [UNSHARDED] * 2),
        (ROW, ["x", UNSHARDED], [UNSHARDED, "x"], [(("x",), 512), (("x",), 1536)], [UNSHARDED] * 2),
        (GRID, [UNSHARDED, "x"], ["x", "y"], [(("x",), 16 * 24 * 4 // 2)], [UNSHARDED, "y"]),
    ],
)
def test_a_product_runs_as_predicted(mesh, left, right, seen, layout):
    compared = observed.product(*factors(mesh, left, right))
    assert compared.agrees
    assert compared.values_agree
    assert [(each.mesh_dims, each.payload_bytes) for each in compared.observed] == seen
    assert compared.layout == LayoutSpec(layout, mesh)


def test_values_that_differ_from_numpys_are_told(monkeypatch):
    right = dtensor.unpack
    monkeypatch.setattr(dtensor, "unpack", lambda tensor: [part + np.float32(1) for part in right(tensor)])
    compared = observed.relayout(
        LayoutSpec(["x", UNSHARDED], ROW).of((8, 8)), LayoutSpec([UNSHARDED] * 2, ROW)
    )
    assert compared.observed == compared.expected
    assert not compared.values_agree
    assert not compared.agrees
