"""Inputs and plausible mistakes for the function of lesson 01 that cuts a tensor into its components."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.judging import Case, drawn
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import numbered_tensor

Array = npt.NDArray[Any]
Split = Callable[[Array, LayoutSpec], list[Array]]

_TRAP = LayoutSpec(["model", UNSHARDED], MeshSpec([("batch", 4), ("model", 2)]))


def right_split(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Returns the component of each device, as the library cuts it."""
    return [part.copy() for part in layout.of(whole.shape).split(whole)]


def cases() -> list[Case]:
    """Returns tensors with layouts: the one of the lesson's trap, one without axes, and fifty random ones."""
    no_axes = Case(
        (numbered_tensor(()), LayoutSpec([], _TRAP.mesh)),
        _("A tensor without axes has one number: every device holds it."),
    )
    return [Case((numbered_tensor((8, 4)), _TRAP)), no_axes, *drawn(_random_sharding)]


def misconceptions() -> dict[Split, str]:
    """Returns plausible mistakes, each with its hint."""
    return {
        cut_by_mesh_shape: _(
            "This cuts an axis into as many parts as the mesh dimension of the same number has positions."
            " The layout may give the axis another dimension: ask `layout.num_shards(axis)`."
        ),
        each_block_once: _("Give every device its component: devices with equal blocks get one each."),
        first_axis_only: _("This cuts the first axis only. The layout has an entry for each axis."),
        first_dim_fastest: _(
            "This numbers the devices column by column."
            " Ask `layout.mesh.coords(device_id)` where each of them stands."
        ),
        by_device_number: _(
            "This hands the parts out by the number of the device. Which part it holds follows from its"
            " position along the dimension that cuts the axis."
        ),
        every_nth: _("Part 0 must hold the first rows, next to each other, not every second or third row."),
        whole_everywhere: _("This gives every device the whole tensor, whatever the layout says."),
    }


def raised_in_packing(error: Exception) -> bool:
    """Returns whether an error comes from the course's functions that make and read real DTensors."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == "course_lib.dtensor" for frame, _line in frames)


def cut_by_mesh_shape(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Takes the shape of the mesh for the numbers of parts."""
    components = []
    for device_id in range(layout.mesh.size):
        part = whole
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != UNSHARDED:
                parts = np.split(part, layout.mesh.sizes[axis], axis=axis)
                part = parts[layout.mesh.coords(device_id)[dim]]
        components.append(part)
    return components


def first_axis_only(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Cuts axis 0 as it should be, and no other."""
    entries = [*layout.sharding_specs[:1], *[UNSHARDED] * (layout.num_axes - 1)]
    return right_split(whole, LayoutSpec(entries, layout.mesh))


def each_block_once(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Leaves the replicas out."""
    return [whole[block.index] for block in layout.of(whole.shape).blocks]


def first_dim_fastest(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Numbers the devices column by column."""
    in_rows, turned = right_split(whole, layout), MeshSpec(reversed(layout.mesh.dims))
    return [in_rows[layout.mesh.device_id(turned.coords(at))] for at in range(turned.size)]


def by_device_number(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Takes the number of a device for its position along every dimension."""
    in_order = right_split(whole, layout)
    holders = {layout.block(device_id): device_id for device_id in range(layout.mesh.size)}
    counts = [layout.num_shards(axis) for axis in range(layout.num_axes)]
    return [in_order[holders[tuple(at % count for count in counts)]] for at in range(layout.mesh.size)]


def every_nth(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Deals the rows out in turn."""
    counts = [layout.num_shards(axis) for axis in range(layout.num_axes)]
    blocks = [layout.block(device_id) for device_id in range(layout.mesh.size)]
    return [
        whole[tuple(slice(at, None, count) for at, count in zip(block, counts, strict=True))]
        for block in blocks
    ]


def whole_everywhere(whole: Array, layout: LayoutSpec) -> list[Array]:
    """Replicates."""
    return [whole] * layout.mesh.size


def part_by_part(whole: Array, layout: LayoutSpec) -> Iterator[Array]:
    """Yields what should be returned in a list."""
    yield from right_split(whole, layout)


def _random_sharding(random: np.random.Generator) -> tuple[Array, LayoutSpec]:
    num_dims, num_axes = (int(number) for number in random.integers(1, 4, size=2))
    mesh = MeshSpec(zip("xyz", random.integers(1, 5, size=num_dims).tolist(), strict=False))
    entries = random.permutation([*mesh.names, *[UNSHARDED] * num_axes])[:num_axes].tolist()
    layout = LayoutSpec(entries, mesh)
    lengths = [layout.num_shards(axis) * int(random.integers(1, 3)) for axis in range(num_axes)]
    return numbered_tensor(lengths), layout
