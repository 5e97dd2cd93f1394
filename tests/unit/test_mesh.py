"""Meshes: groups of devices; and what meshes, layouts and plans refuse. What a layout does: test_sharding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError, MeshSpec, Plan
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.unit.specs import meshes

MESH = MeshSpec([("x", 3), ("y", 2)])
ROWS = LayoutSpec(["x", UNSHARDED], MESH)


@given(meshes(), st.data())
def test_groups_partition_the_devices_and_differ_only_along_their_dimensions(mesh, data):
    names = data.draw(st.sets(st.sampled_from(mesh.names)))
    groups = mesh.groups(*names)
    assert sorted(device_id for group in groups for device_id in group) == list(range(mesh.size))
    assert {len(group) for group in groups} == {math.prod(mesh.dim_size(name) for name in names)}
    for group in groups:
        fixed = [
            {name: at for name, at in mesh.coords(device_id).items() if name not in names}
            for device_id in group
        ]
        assert all(places == fixed[0] for places in fixed)


REFUSED = {
    "no dimension": (lambda: MeshSpec([]), r"\[\] cannot name the dimensions of a mesh"),
    "size 0": (lambda: MeshSpec([("x", 0)]), "Mesh dimension 'x' has the size 0"),
    "unknown dimension of a layout": (lambda: LayoutSpec(["z"], MESH), "The mesh has no dimension 'z'"),
    "one dimension on two axes": (lambda: LayoutSpec(["x", "x"], MESH), "'x' splits two axes"),
    "another number of axes": (
        lambda: ROWS.of((6,)),
        r"\[x, unsharded\] has 2 axes, the tensor \(6,\) has 1",
    ),
    "unknown dimension of a plan": (lambda: Plan("", MESH, {"batch": "c"}), "The mesh has no dimension 'c'"),
    "a plan with one dimension on two axes": (
        lambda: Plan("mine", MESH, {"hidden": "y", "classes": "y"}).layout(("hidden", "classes")),
        r"plan 'mine'.*\[hidden, classes\]: 'hidden' and 'classes'\.",
    ),
    "does not divide": (lambda: ROWS.of((8, 4)), "Axis 0 of length 8 does not split in 3 parts over 'x'"),
}


@pytest.mark.parametrize(("attempt", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_by_name(attempt, problem):
    with pytest.raises(CourseError, match=problem):
        attempt()


@pytest.mark.parametrize("names", [[""], ["1x"], [3], ["unsharded"], ["x", "x"]])
def test_refuses_names_that_are_no_identifiers_or_come_twice(names):
    with pytest.raises(CourseError, match="cannot name the dimensions of a mesh"):
        MeshSpec([(name, 2) for name in names])
