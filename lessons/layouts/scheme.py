"""Schemes: the tensors of a model as a plan lays them out, each cut in the blocks that the plan makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Place, cell, shade, words_in
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import node
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Block

_GAP, _WIDTH, _NOTE_SIZE = 22.0, 500.0, 11.0
_COLUMN = (_WIDTH - 2 * _GAP) / 3  # so that three tensors stand in one row
_LEAST_LENGTH, _LENGTH_A_DOUBLING, _LEAST_BLOCK, _THICKNESS = 18.0, 10.0, 14.0, 28.0

Devices = tuple[int, ...]
Colours = Mapping[tuple[str, Devices], str]  # of the block of a tensor that these devices hold


class Scheme(DrawsItself):
    """Tensors with named axes under one plan. It draws itself.

    >>> from course_lib.specs.plan import data_parallel
    >>> tensors = {"x": ("batch", "features"), "W1": ("features", "hidden")}
    >>> scheme = Scheme(data_parallel(4), tensors, {"batch": 64, "features": 1200, "hidden": 48})
    >>> {name: sharding.local_shape for name, sharding in scheme.shardings.items()}
    {'x': (16, 1200), 'W1': (1200, 48)}

    Attributes:
        plan: the mesh, and which of its dimensions splits which axis.
        tensors: the names of each tensor's axes.
        sizes: the size of each axis.
        shardings: each tensor with its layout and its shape.

    Raises:
        CourseError: as `Plan.shardings`.
    """

    def __init__(self, plan: Plan, tensors: Mapping[str, Axes], sizes: Mapping[str, int]) -> None:
        self.plan, self.tensors, self.sizes = plan, tensors, sizes
        self.shardings = plan.shardings(tensors, sizes)

    def picture(self) -> Figure:
        """Returns the picture of the scheme."""
        title = _("Scheme {plan} on the mesh {mesh}", plan=self.plan.name, mesh=self.plan.mesh)
        told = _told(self)
        tensors = [drawn(self, name, heading(self, name), _COLUMN) for name in self.tensors]
        drawing = arranging.flowing(tensors, _GAP, _WIDTH)
        lines = [line for name in self.tensors for line in ("", heading(self, name), *notes_of(self, name))]
        return headed(title, [drawing], [*told, *lines], width=_WIDTH, says=told)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.tensors)} under the plan {self.plan.name!r}>"


def _told(scheme: Scheme) -> list[str]:
    """Returns for each mesh dimension which axis it splits, and the tensors that have this axis."""
    lines = []
    for name in (name for name, size in scheme.plan.mesh.dims if size > 1):
        split = [axis for axis, dim in scheme.plan.splits.items() if dim == name]
        having = {axis: [each for each, axes in scheme.tensors.items() if axis in axes] for axis in split}
        told = [
            _("Mesh dimension {name} splits the axis {axis}: {tensors}.", name=name, axis=axis, tensors=names)
            for axis, tensors in having.items()
            if (names := ", ".join(tensors))
        ]
        lines += told or [_("Mesh dimension {name} splits no axis.", name=name)]
    return [*lines, _("The numbers in a block are the devices that hold it.")]


def notes_of(scheme: Scheme, name: str) -> list[str]:
    """Returns what the picture shows of a tensor in words: its axes, and who holds its blocks."""
    rows: dict[float, list[str]] = {}
    for block in scheme.shardings[name].blocks:
        _x, y, _width, _height = _place(scheme, name, block)
        rows.setdefault(y, []).append(_holders(scheme, block.devices))
    holders = " / ".join(" | ".join(row) for row in rows.values())
    notes = [*_notes(scheme, name), _("blocks on {devices}", devices=holders)]
    return [f"  {note}" for note in notes]


def heading(scheme: Scheme, name: str) -> str:
    """Returns a tensor's name and shape."""
    return f"{name} {scheme.shardings[name].global_shape}"


def _notes(scheme: Scheme, name: str) -> list[str]:
    """Returns for each axis where it runs and what splits it, and then what one device holds."""
    sharding, axes = scheme.shardings[name], scheme.tensors[name]
    arrows = {axis: arrow for axis, arrow in zip(_sides(axes), "↓→", strict=True) if axis is not None}
    notes = [f"{arrows[axis]} {axis} {scheme.sizes[axis]} · {_cut(scheme, axis)}" for axis in axes]
    copies = ngettext("{count} copy", "{count} copies", sharding.copies)
    held = _("on a device: {local_shape}, {copies}", local_shape=sharding.local_shape, copies=copies)
    return [*notes, held]


def _cut(scheme: Scheme, axis: str) -> str:
    if scheme.plan.num_shards(axis) == 1:
        return _("whole")
    return _("split by {name}", name=scheme.plan.splits[axis])


def drawn(scheme: Scheme, name: str, title: str, column: float, *, first: int = 0) -> Drawing:
    """Returns a tensor under a title and above its notes, in a column of this width.

    Args:
        scheme: in which the tensor is laid out.
        name: of the tensor.
        title: what stands above it.
        column: the width.
        first: how many colours are taken, by other data.
    """
    colours = _colours(scheme, first)
    blocks = scheme.shardings[name].blocks
    places = [_place(scheme, name, block) for block in blocks]
    width, height = max(x + width for x, _y, width, _h in places), max(y + h for _x, y, _w, h in places)
    parts = []
    for at, (block, place) in enumerate(zip(blocks, places, strict=True)):
        label = words_in(place, _holders(scheme, block.devices))
        nodes = cell(place, *label, fill=colours[name, block.devices])
        parts.append(node("g", *nodes, class_="part", data_block=str(at)))
    notes = arranging.lines_of_text(
        _notes(scheme, name), size=_NOTE_SIZE, max_width=column, fill=shapes.SOFT_INK
    )
    blocks_drawn = Drawing(width, height, tuple(parts))
    return replace(arranging.titled(title, arranging.stacked([blocks_drawn, notes], 4)), width=column)


def _holders(scheme: Scheme, devices: Devices) -> str:
    return _("all") if len(devices) == scheme.plan.mesh.size else " ".join(map(str, devices))


def _colours(scheme: Scheme, first: int) -> Colours:
    """Returns a colour for each block that not every device holds: equal colours are equal data."""
    blocks = [(name, each.devices) for name, sharding in scheme.shardings.items() for each in sharding.blocks]
    shared = {block: shapes.EMPTY for block in blocks if len(block[1]) == scheme.plan.mesh.size}
    others = (block for block in dict.fromkeys(blocks) if block not in shared)
    return shared | {block: shade(at) for at, block in enumerate(others, first)}


def _place(scheme: Scheme, name: str, block: Block) -> Place:
    """Returns where a block lies."""
    parts = dict(zip(scheme.tensors[name], block.index, strict=True))
    (y, height), (x, width) = (
        (0.0, _THICKNESS) if axis is None else _span(scheme, axis, parts[axis])
        for axis in _sides(scheme.tensors[name])
    )
    return x, y, width, height


def _span(scheme: Scheme, axis: str, part: slice) -> tuple[float, float]:
    """Returns where a part of an axis starts, and its length: an axis is as long in every tensor."""
    size = max(scheme.sizes[axis], 1)
    length = min(_LEAST_LENGTH + _LENGTH_A_DOUBLING * math.log2(size), _COLUMN)
    unit = max(length, _LEAST_BLOCK * scheme.plan.num_shards(axis)) / size
    return part.start * unit, (part.stop - part.start) * unit


def _sides(axes: Axes) -> tuple[str | None, str | None]:
    """Returns the axis that runs down and the one that runs right; of vectors only the batch runs down."""
    if len(axes) == 1:
        return (BATCH, None) if axes == (BATCH,) else (None, axes[0])
    down, right = axes
    return down, right
