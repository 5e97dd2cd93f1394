"""Meshes: positions and groups; and what meshes and layouts refuse. What a layout does: test_sharding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError, MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.unit.specs import meshes

MESH = MeshSpec([("x", 3), ("y", 2)])


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
    "no dimension": (
        lambda: MeshSpec([]),
        "[] cannot name the dimensions of a mesh.\n"
        '  Allowed: one or more names of letters, digits and "_", each once, and not "unsharded"\n'
        '  What to do: Write for example MeshSpec([("batch", 4), ("model", 2)]).',
    ),
    "size 0": (
        lambda: MeshSpec([("x", 0)]),
        "Mesh dimension 'x' has the size 0.\n"
        "  Allowed: whole numbers from 1\n"
        "  What to do: Give the number of devices along this dimension.",
    ),
    "unknown dimension of a layout": (
        lambda: LayoutSpec(["z"], MESH),
        "The mesh has no dimension 'z'.\n"
        "  Allowed: x, y, unsharded\n"
        "  What to do: Use one of these names, or add the dimension to the mesh.",
    ),
    "one dimension on two axes": (
        lambda: LayoutSpec(["x", "x"], MESH),
        "The mesh dimension 'x' splits two axes.\n"
        "  Allowed: each mesh dimension on one axis at most\n"
        '  What to do: Use another mesh dimension or "unsharded" for one of the axes.',
    ),
    "another number of axes": (
        lambda: LayoutSpec(["x", UNSHARDED], MESH).of((6,)),
        "The layout [x, unsharded] has 2 axes, the tensor (6,) has 1.\n"
        "  Allowed: as many entries in the layout as the tensor has axes\n"
        '  What to do: Give each axis a mesh dimension or "unsharded".',
    ),
    "does not divide": (
        lambda: LayoutSpec(["x", UNSHARDED], MESH).of((8, 4)),
        "Axis 0 of length 8 does not split in 3 parts over 'x'.\n"
        "  Allowed: lengths that divide by 3\n"
        "  What to do: Change the length, pad it, or leave this axis unsharded.",
    ),
}


@pytest.mark.parametrize(("attempt", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses_with_a_message_that_names_value_allowance_and_cure(attempt, message):
    with pytest.raises(CourseError) as refusal:
        attempt()
    assert str(refusal.value) == message


@pytest.mark.parametrize("names", [[""], ["1x"], [3], ["unsharded"], ["x", "x"]])
def test_refuses_names_that_are_no_identifiers_or_come_twice(names):
    with pytest.raises(CourseError, match="cannot name the dimensions of a mesh"):
        MeshSpec([(name, 2) for name in names])
