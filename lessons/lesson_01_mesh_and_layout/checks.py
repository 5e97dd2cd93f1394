"""The exercises of lesson 01 that only code can check: a layout, a function, what the explorer shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding, numbered_tensor

Array = npt.NDArray[Any]
Split = Callable[[Array, LayoutSpec], Any]

_TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])
_TRAP = LayoutSpec(["model", UNSHARDED], MeshSpec([("batch", 4), ("model", 2)]))  # of the lesson's packer
_EXPLORED = MeshSpec([("x", 2), ("y", 4)])
_UNTOUCHED = LayoutSpec(["x", UNSHARDED], _EXPLORED).of((8, 6))


@exercise("01-four-copies", right=LayoutSpec(["batch", UNSHARDED], _TWO_BY_FOUR))
def four_copies(answer: LayoutSpec) -> str | None:
    """A layout that splits the rows and leaves four copies."""
    if answer.mesh != _TWO_BY_FOUR:
        return _("Use exercise_mesh: its dimensions are batch 2 and model 4.")
    sharding = answer.of((8, 8))
    if sharding.local_shape[1] != 8:
        return _("This layout splits the columns, and the task asks for the rows.")
    if sharding.copies != 4:
        return _(
            "Under this layout the number of copies is {copies}. Multiply the sizes of unused dimensions.",
            copies=sharding.copies,
        )
    return None


def _split(whole: Array, layout: LayoutSpec) -> list[Array]:
    return [part.copy() for part in layout.of(whole.shape).split(whole)]


@exercise("01-split", right=_split)
def split(answer: Split) -> str | None:
    """A function that cuts a tensor into the components of a layout."""
    yielded: list[Any] = []

    def watched(whole: Array, layout: LayoutSpec) -> Any:
        components = answer(whole, layout)
        if isinstance(components, Iterator):  # which shows no parts
            yielded.append(components)
        return components

    no_axes = Case(
        (numbered_tensor(()), LayoutSpec([], _TRAP.mesh)),
        _("A tensor without axes has one number: every device holds it."),
    )
    misconceptions: dict[Split, str] = {
        _cut_by_mesh_shape: _(
            "This cuts an axis into as many parts as the mesh dimension of the same number has positions."
            " The layout may give the axis another dimension: ask `layout.num_shards(axis)`."
        ),
        _each_block_once: _("Give every device its component: devices with equal blocks get one each."),
        _first_axis_only: _("This cuts the first axis only. The layout has an entry for each axis."),
        _first_dim_fastest: _(
            "This numbers the devices column by column."
            " Ask `layout.mesh.coords(device_id)` where each of them stands."
        ),
    }
    trap = Case((numbered_tensor((8, 4)), _TRAP))
    cases = [trap, no_axes, *drawn(_random_sharding)]
    hint = judge(watched, _split, cases, misconceptions=misconceptions)
    return _("Your function yields the components one by one. Return a list of them.") if yielded else hint


def _cut_by_mesh_shape(whole: Array, layout: LayoutSpec) -> list[Array]:
    components = []
    for device_id in range(layout.mesh.size):
        part = whole
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != UNSHARDED:
                parts = np.split(part, layout.mesh.sizes[axis], axis=axis)
                part = parts[layout.mesh.coords(device_id)[dim]]
        components.append(part)
    return components


def _each_block_once(whole: Array, layout: LayoutSpec) -> list[Array]:
    return [whole[block.index] for block in layout.of(whole.shape).blocks]


def _first_axis_only(whole: Array, layout: LayoutSpec) -> list[Array]:
    entries = [*layout.sharding_specs[:1], *[UNSHARDED] * (layout.num_axes - 1)]
    return _split(whole, LayoutSpec(entries, layout.mesh))


def _first_dim_fastest(whole: Array, layout: LayoutSpec) -> list[Array]:
    in_rows, turned = _split(whole, layout), MeshSpec(reversed(layout.mesh.dims))
    return [in_rows[layout.mesh.device_id(turned.coords(at))] for at in range(turned.size)]


def _random_sharding(random: np.random.Generator) -> tuple[Array, LayoutSpec]:
    num_dims, num_axes = (int(number) for number in random.integers(1, 4, size=2))
    mesh = MeshSpec(zip("xyz", random.integers(1, 5, size=num_dims).tolist(), strict=False))
    entries = random.permutation([*mesh.names, *[UNSHARDED] * num_axes])[:num_axes].tolist()
    layout = LayoutSpec(entries, mesh)
    lengths = [layout.num_shards(axis) * int(random.integers(1, 3)) for axis in range(num_axes)]
    return numbered_tensor(lengths), layout


@exercise(
    "01-explore-two-copies",
    right=LayoutSpec(["y", UNSHARDED], _EXPLORED).of((8, 6)),
    unanswered=_UNTOUCHED,
)
def two_copies(answer: Sharding) -> str | None:
    """A choice in which two devices hold each element."""
    return _explored(answer, copies=2)


@exercise(
    "01-explore-one-copy",
    right=LayoutSpec(["y", "x"], _EXPLORED).of((8, 6)),
    unanswered=_UNTOUCHED,
)
def one_copy(answer: Sharding) -> str | None:
    """A choice in which each element is held once."""
    return _explored(answer, copies=1)


def _explored(chosen: Sharding, copies: int) -> str | None:
    if chosen.global_shape != (8, 6):
        return _(
            "The tensor in the explorer has the shape {shape}. Set it to (8, 6).", shape=chosen.global_shape
        )
    if chosen.mesh.size != 8:
        return ngettext(
            "The mesh in the explorer has {count} device; it needs 8.",
            "The mesh in the explorer has {count} devices; it needs 8.",
            chosen.mesh.size,
        )
    if chosen.copies != copies:
        return ngettext(
            "Now {count} device holds each element. Mesh dimensions that cut no axis make copies.",
            "Now {count} devices hold each element. Mesh dimensions that cut no axis make copies.",
            chosen.copies,
        )
    return None
