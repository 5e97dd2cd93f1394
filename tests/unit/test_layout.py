"""Layouts: who holds what, against a brute-force count, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from course_lib import CourseError, MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.unit.specs import layouts, layouts_with_shapes

MESH = MeshSpec([("x", 3), ("y", 2)])


@given(layouts_with_shapes())
def test_every_element_lies_on_as_many_devices_as_there_are_replicas(case):
    layout, global_shape = case
    held_by = np.zeros(global_shape, int)
    for index in layout.of(global_shape).shards.values():
        held_by[index] += 1
    assert np.all(held_by == layout.replicas)


@given(layouts_with_shapes())
def test_local_size_times_the_number_of_shards_is_the_global_size(case):
    layout, global_shape = case
    num_shards = math.prod(layout.num_shards(axis) for axis in range(layout.num_axes))
    assert math.prod(layout.local_shape(global_shape)) * num_shards == math.prod(global_shape)
    assert num_shards * layout.replicas == layout.mesh.size


@given(layouts_with_shapes())
def test_each_shard_has_the_local_shape_and_lies_where_its_coordinate_says(case):
    layout, global_shape = case
    numbers = np.arange(math.prod(global_shape)).reshape(global_shape)
    for device_id, index in layout.of(global_shape).shards.items():
        expected = numbers
        for axis, name in enumerate(layout.sharding_specs):
            if name != UNSHARDED:
                parts = np.split(expected, layout.mesh.dim_size(name), axis)
                expected = parts[layout.mesh.coords(device_id)[name]]
        assert numbers[index].shape == layout.local_shape(global_shape)
        np.testing.assert_array_equal(numbers[index], expected)


@given(layouts_with_shapes())
def test_devices_share_a_block_exactly_if_they_differ_along_replicated_dimensions_only(case):
    layout, global_shape = case
    shards = layout.of(global_shape).shards
    for group in layout.mesh.groups(*layout.replicated_dims):
        assert len({layout.block(device_id) for device_id in group}) == 1
        assert all(shards[device_id] == shards[group[0]] for device_id in group)
    assert len({layout.block(device_id) for device_id in shards}) == layout.mesh.size // layout.replicas


@given(layouts())
def test_each_mesh_dimension_either_shards_or_replicates(layout):
    assert sorted([*layout.sharded_dims, *layout.replicated_dims]) == sorted(layout.mesh.names)


def test_builders():
    assert LayoutSpec.replicated(MESH, 2) == LayoutSpec([UNSHARDED, UNSHARDED], MESH)
    assert str(LayoutSpec(["x", UNSHARDED], MESH)) == "[x, unsharded]"
    assert LayoutSpec([], MESH).local_shape(()) == ()
    assert LayoutSpec(["x"], MESH).local_shape(np.array([6])) == (2,)


REFUSED = {
    "unknown dimension": (
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
        lambda: LayoutSpec(["x", UNSHARDED], MESH).local_shape((6,)),
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
    "negative length": (
        lambda: LayoutSpec(["x"], MESH).local_shape((-6,)),
        "Axis 0 has the length -6.\n"
        "  Allowed: whole numbers from 0\n"
        "  What to do: Give the number of elements along this axis.",
    ),
}


@pytest.mark.parametrize(("attempt", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses_with_a_message_that_names_value_allowance_and_cure(attempt, message):
    with pytest.raises(CourseError) as refusal:
        attempt()
    assert str(refusal.value) == message


@pytest.mark.parametrize("length", [6.0, "6", None, True])
def test_refuses_lengths_that_are_no_whole_numbers(length):
    with pytest.raises(CourseError, match="has the length"):
        LayoutSpec(["x"], MESH).local_shape((length,))
