"""Meshes, shardings and real components: against NumPy and each other; and what cannot be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError, MeshSpec, Plan
from course_lib.specs.components import Comparison, Components
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import numbered_tensor
from tests.unit.specs import layouts_with_shapes, meshes

MESH = MeshSpec([("x", 3), ("y", 2)])
ROWS = LayoutSpec(["x", UNSHARDED], MESH)


def cut(whole: np.ndarray, layout: LayoutSpec) -> list[np.ndarray]:
    """Returns each device's component, cut one axis after the other by NumPy."""
    components = []
    for device_id in range(layout.mesh.size):
        part, coords = whole, layout.mesh.coords(device_id)
        for axis, name in enumerate(layout.sharding_specs):
            if name != UNSHARDED:
                part = np.split(part, layout.mesh.dim_size(name), axis)[coords[name]]
        components.append(part)
    return components


@given(layouts_with_shapes())
@settings(max_examples=60)
def test_splits_as_numpy_does_and_puts_together_again(case):
    layout, global_shape = case
    sharding, whole = layout.of(global_shape), numbered_tensor(global_shape)
    components = cut(whole, layout)
    assert all(np.array_equal(*pair) for pair in zip(sharding.split(whole), components, strict=True))
    assert {component.shape for component in components} == {sharding.local_shape}
    assert {component.nbytes for component in components} == {sharding.bytes_per_device()}
    np.testing.assert_array_equal(Components.of(layout, components).whole, whole)
    assert Components.of(layout, components).sharding == sharding
    assert Comparison(sharding, whole, components).agrees


@given(layouts_with_shapes())
@settings(max_examples=60)
def test_blocks_tile_the_tensor_and_every_device_holds_one(case):
    layout, global_shape = case
    sharding, whole = layout.of(global_shape), numbered_tensor(global_shape)
    covered = np.concatenate([whole[block.index].ravel() for block in sharding.blocks])
    assert sorted(covered.tolist()) == list(range(whole.size))
    assert sorted(device for block in sharding.blocks for device in block.devices) == list(
        range(layout.mesh.size)
    )
    assert {len(block.devices) for block in sharding.blocks} == {sharding.copies}
    for device_id, number in enumerate(sharding.holdings):
        assert device_id in sharding.blocks[number].devices


def test_equal_values_in_two_blocks_count_as_the_predicted_block():
    assert Comparison(ROWS.of((6, 2)), np.zeros((6, 2)), [np.zeros((2, 2))] * 6).agrees


def test_a_component_of_another_shape_is_wrong_even_if_it_would_broadcast():
    components = [np.zeros((2, 2))] * 5 + [np.zeros((1, 2))]
    assert Comparison(ROWS.of((6, 2)), np.zeros((6, 2)), components).holdings == (0, 0, 1, 1, 2, None)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ROWS.of((6, 4)).split(np.zeros((6, 5))), r"The tensor has the shape \(6, 5\)"),
        (lambda: Components.of(ROWS, [np.zeros((1, 4))] * 5 + [np.zeros((1, 5))]), "several shapes"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(wrong, says):
    with pytest.raises(CourseError, match=says):
        wrong()


# Meshes, and what is refused


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
