"""Lesson 01's own checks: code that readers write in other ways, and the explorer as they leave it."""

import itertools

import numpy as np
import pytest

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.exercises.checks import Status, check
from lessons.lesson_01_mesh_and_layout.checks_split import cases, misconceptions
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer


def nested_split(whole, layout):
    """Splits every axis for all devices first, then picks by position."""

    def parts_of(part, axis):
        if axis == layout.num_axes:
            return part
        return [parts_of(each, axis + 1) for each in np.split(part, layout.num_shards(axis), axis)]

    parts, components = parts_of(np.asarray(whole), 0), []
    for device_id in range(layout.mesh.size):
        component = parts
        for name in layout.sharding_specs:
            component = component[layout.mesh.coords(device_id).get(name, 0)]
        components.append(component)
    return components


def slices(whole, layout):
    def index(place, axis, name):
        length = whole.shape[axis] // layout.num_shards(axis)
        first = 0 if name == UNSHARDED else place[name] * length
        return slice(first, first + length)

    places = map(layout.mesh.coords, range(layout.mesh.size))
    return [
        whole[tuple(index(place, axis, name) for axis, name in enumerate(layout.sharding_specs))]
        for place in places
    ]


def positions_by_product(whole, layout):
    """Numbers the devices itself."""
    components = []
    for position in itertools.product(*map(range, layout.mesh.sizes)):
        place, part = dict(zip(layout.mesh.names, position, strict=True)), whole
        for axis, name in enumerate(layout.sharding_specs):
            part = np.array_split(part, layout.num_shards(axis), axis)[place.get(name, 0)]
        components.append(part)
    return tuple(components)


def by_block(whole, layout):
    components = []
    for device_id in range(layout.mesh.size):
        part = whole
        for axis, at in enumerate(layout.block(device_id)):
            length = part.shape[axis] // layout.num_shards(axis)
            part = np.take(part, range(at * length, (at + 1) * length), axis)
        components.append(part.tolist())
    return components


def mesh_sizes(whole, layout):
    """Asks the mesh, by the name of the dimension."""
    components = []
    for place in map(layout.mesh.coords, range(layout.mesh.size)):
        part = whole
        for axis, name in enumerate(layout.sharding_specs):
            if name in place:
                part = np.split(part, layout.mesh.dim_size(name), axis)[place[name]]
        components.append(part)
    return np.stack(components)


def by_strides(whole, layout):
    """Finds the positions from the numbers of the devices."""
    names, sizes = layout.mesh.names, layout.mesh.sizes
    grid = np.arange(layout.mesh.size).reshape(sizes)
    found = {}
    for position, device_id in np.ndenumerate(grid):
        part = whole
        for axis, name in enumerate(layout.sharding_specs):
            if name != UNSHARDED:
                part = np.split(part, sizes[names.index(name)], axis)[position[names.index(name)]]
        found[device_id] = part
    return [found[device_id] for device_id in sorted(found)]


@pytest.mark.parametrize(
    "split", [nested_split, slices, positions_by_product, by_block, mesh_sizes, by_strides]
)
def test_a_split_may_be_written_in_other_ways(split):
    assert repr(check("01-split", split)) == "✓ Right."


def half(whole, layout):
    """Forgets the columns, and the mesh."""
    return np.split(whole, 2)


def last_position(whole, layout):
    """Takes the position of the last device for all."""
    right = nested_split(whole, layout)
    return [right[-1]] * len(right)


def transposed(whole, layout):
    return [np.transpose(part) for part in nested_split(whole, layout)]


def no_return(whole, layout):
    nested_split(whole, layout)


@pytest.mark.parametrize(
    ("split", "words"),
    [(half, "fails for"), (last_position, "For `whole"), (transposed, "For `whole"), (no_return, "return")],
)
def test_other_mistakes_are_shown_on_an_input(split, words):
    result = check("01-split", split)
    assert result.status is Status.WRONG
    assert words in result.message


def test_a_split_that_needs_an_axis_is_told_of_the_tensor_without_any():
    def needing_an_axis(whole, layout):
        return nested_split(whole, layout) if whole.shape[0] else []

    assert "without axes" in check("01-split", needing_an_axis).message


def test_a_half_written_split_is_open():
    assert check("01-split", lambda whole, layout: ...).status is Status.OPEN


def test_no_two_mistakes_give_the_same_on_all_inputs():
    seen = {}
    for function in misconceptions():
        made = []
        for case in cases():
            try:
                made.append([np.asarray(part).tolist() for part in function(*case.inputs)])
            except Exception:
                made.append("failed")
        seen.setdefault(repr(made), []).append(function.__name__)
    assert all(len(names) == 1 for names in seen.values()), seen


TASKS = ("01-explore-two-copies", "01-explore-one-copy")


@pytest.mark.parametrize("task", TASKS)
def test_an_explorer_as_the_lesson_shows_it_is_not_answered_yet(task):
    assert repr(check(task, MeshLayoutExplorer())) == (
        "… Not answered yet. Choose in the explorer above, then run this cell."
    )


def test_the_explorer_is_read_when_the_check_runs():
    explorer, (two, one) = MeshLayoutExplorer(), TASKS
    explorer.state = {**explorer.state, "layout": ["y", UNSHARDED]}
    assert check(two, explorer).passed
    assert "2 devices hold each element" in repr(check(one, explorer))
    explorer.state = {**explorer.state, "layout": ["x", "y"]}
    assert "does not split in 4 parts" in repr(check(one, explorer))
    explorer.state = {**explorer.state, "layout": ["y", "x"]}
    assert check(one, explorer).passed
    explorer.state = {**explorer.state, "num_dims": 1, "mesh": [["x", 8]], "layout": ["x", UNSHARDED]}
    assert check(one, explorer).passed


def test_each_task_has_answers_on_several_meshes():
    """So that the sentence of the lesson, eight devices and (8, 6), is all that one needs."""
    for copies, task in ((2, TASKS[0]), (1, TASKS[1])):
        for sizes in ((2, 4), (4, 2), (2, 2, 2)):
            mesh = MeshSpec(zip("xyz", sizes, strict=False))
            entries = itertools.permutations([*mesh.names, UNSHARDED, UNSHARDED], 2)
            legal = [LayoutSpec(each, mesh) for each in entries]
            right = [
                layout
                for layout in legal
                if all(n % layout.num_shards(at) == 0 for at, n in enumerate((8, 6)))
                and layout.replicas == copies
            ]
            passed = [layout for layout in right if check(task, layout.of((8, 6))).passed]
            assert passed == right, (task, sizes)
