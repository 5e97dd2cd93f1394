"""Products and relayouts on real devices beside their prediction, and what running them leaves behind."""

import os

import numpy as np
import pytest

import course_lib
from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec, dtensor, observed
from course_lib.specs.collectives import Kind

course_lib.start_tensorflow()
pytestmark = pytest.mark.usefixtures("optimized")

ROW = MeshSpec([("x", 8)])
GRID = MeshSpec([("x", 4), ("y", 2)])
COMBINE = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"


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


def test_what_reads_the_product_can_save_an_exchange():
    split = factors(ROW, ["x", UNSHARDED], [UNSHARDED, "x"])
    compared = observed.product(*split, LayoutSpec([UNSHARDED, "x"], ROW))
    assert compared.agrees
    assert [each.payload_bytes for each in compared.observed] == [512]


def test_a_relayout_runs_as_predicted():
    source = LayoutSpec(["x", UNSHARDED], GRID).of((16, 8))
    moved = observed.relayout(source, LayoutSpec([UNSHARDED, "x"], GRID))
    assert moved.agrees
    assert [(each.kind, each.payload_bytes) for each in moved.observed] == [(Kind.ALL_TO_ALL, 128)]
    assert observed.relayout(source, LayoutSpec(["x", "y"], GRID)).observed == ()


def test_elements_of_eight_bytes_cost_twice_as_much():
    compared = observed.product(*factors(ROW, [UNSHARDED, "x"], ["x", UNSHARDED], element_bytes=8))
    assert compared.agrees
    assert [each.payload_bytes for each in compared.observed] == [2 * 16 * 24 * 4]


@pytest.mark.parametrize("before", [None, "4"])
def test_the_readers_setting_stays(before, monkeypatch):
    if before is None:
        monkeypatch.delenv(COMBINE, raising=False)
    else:
        monkeypatch.setenv(COMBINE, before)
    observed.product(*factors(ROW, ["x", UNSHARDED], [UNSHARDED, "x"]))
    assert os.environ.get(COMBINE) == before


def test_values_that_differ_from_numpys_are_told(monkeypatch):
    right = dtensor.unpack
    monkeypatch.setattr(dtensor, "unpack", lambda tensor: [part + np.float32(1) for part in right(tensor)])
    compared = observed.relayout(
        LayoutSpec(["x", UNSHARDED], ROW).of((8, 8)), LayoutSpec([UNSHARDED] * 2, ROW)
    )
    assert compared.observed == compared.expected
    assert not compared.values_agree
    assert not compared.agrees


def test_what_cannot_be_run_is_refused_before_tensorflow_sees_it():
    with pytest.raises(CourseError, match="element_bytes=2"):
        observed.product(*factors(ROW, [UNSHARDED, "x"], ["x", UNSHARDED], element_bytes=2))
    wrong = LayoutSpec([UNSHARDED, "x"], GRID).of((8, 8)), LayoutSpec(["y", UNSHARDED], GRID).of((8, 8))
    with pytest.raises(CourseError, match="split over x in one factor and over y"):
        observed.product(*wrong)
    large = MeshSpec([("x", 4), ("y", 4)])
    with pytest.raises(CourseError, match="There is no device CPU:8"):
        observed.relayout(LayoutSpec(["x", "y"], large).of((8, 8)), LayoutSpec([UNSHARDED] * 2, large))
