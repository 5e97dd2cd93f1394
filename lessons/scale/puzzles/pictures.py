"""The tensors of a puzzle, cut as a choice cuts them, and the devices that hold their parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from course_lib.i18n import _, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Place, cell, shade, words_in
from course_lib.pictures.shapes import node
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import Block
from lessons.scale.puzzles.tasks import CutTensor

_NEVER_SPLIT = ("sequence", "keys", "size")
_SMALL, _NOTE, _TITLE = 10.0, 11.0, 12.0
_LEAST, _MOST, _A_DOUBLING, _LEAST_BLOCK, _THICKNESS, _COLUMN = 18.0, 150.0, 9.0, 17.0, 26.0, 185.0
_MILLION = 1_000_000
_DEVICE, _GAP, _NODE_COLUMNS = 26.0, 2.0, 4


def tensor_drawing(tensor: CutTensor, devices: Sequence[int], element_bytes: int) -> Drawing:
    """Returns tensors that are cut alike: blocks with the devices that hold them, and what one device holds.

    Args:
        tensor: how they are cut.
        devices: the numbers of the devices that are drawn.
        element_bytes: how many bytes a number takes.
    """
    nodes = []
    for at, block in enumerate(tensor.sharding.blocks):
        place = _place(tensor, block)
        every = len(block.devices) == len(devices)
        told = _("all") if every else " ".join(str(devices[each]) for each in block.devices)
        fill = shapes.EMPTY if every and len(devices) > 1 else shade(at)
        nodes.append(node("g", *cell(place, *words_in(place, told), fill=fill), class_="part"))
    height, width = (_length(tensor, axis) for axis in _sides(tensor))
    title = f"{tensor.names} {tensor.sharding.global_shape}"
    notes = arranging.lines_of_text(
        tensor_notes(tensor, element_bytes), size=_NOTE, max_width=_COLUMN, fill=shapes.SOFT_INK
    )
    heading = arranging.lines_of_text([title], size=_TITLE, max_width=max(_COLUMN, width))
    return arranging.stacked([heading, Drawing(width, height, tuple(nodes)), notes], 5)


def tensor_notes(tensor: CutTensor, element_bytes: int) -> list[str]:
    """Returns where each axis runs and what splits it, and the bytes on a device."""
    down, right = _sides(tensor)
    arrows = {down: "↓", right: "→"}
    notes = []
    for axis, name in zip(tensor.axes, tensor.sharding.layout.sharding_specs, strict=True):
        split = _("whole") if name == UNSHARDED else _("split by {name}", name=name)
        notes += [f"{arrows[axis]} {axis}: {split}"] if axis in arrows else []
    size = element_bytes * math.prod(tensor.sharding.local_shape)
    held = f"{size / _MILLION:,.1f} MB" if size >= _MILLION else f"{size:,} B"
    held = f"{tensor.count} × {held}" if tensor.count > 1 else held
    return [*notes, _("on a device: {held}", held=held)]


def tensor_line(tensor: CutTensor, devices: Sequence[int], element_bytes: int) -> str:
    """Returns the same in words: with who holds which block."""
    blocks = tensor.sharding.blocks
    holders = " | ".join(" ".join(str(devices[at]) for at in block.devices) for block in blocks)
    told = [*tensor_notes(tensor, element_bytes), _("blocks on {devices}", devices=holders)]
    return labelled(f"{tensor.names} {tensor.sharding.global_shape}", _("; ").join(told))


def nodes_drawings(devices: Mapping[int, tuple[str, int]], per_node: int) -> list[Drawing]:
    """Returns the nodes in which some devices stand, each device with its label in its colour.

    Args:
        devices: for the number of each device what it says, and the number of its colour.
        per_node: how many devices share a node.
    """
    numbers = sorted({device // per_node for device in devices})
    return [_node(number, devices, per_node) for number in numbers]


def nodes_line(devices: Sequence[int], per_node: int) -> str:
    """Returns in which nodes some devices stand."""
    nodes = ", ".join(str(each) for each in sorted({device // per_node for device in devices}))
    return _("Devices: {count}. Their nodes: {nodes}.", count=len(devices), nodes=nodes)


def _node(number: int, devices: Mapping[int, tuple[str, int]], per_node: int) -> Drawing:
    """Returns a node: four devices in a row, those of the copy in their colours."""
    columns, rows = _NODE_COLUMNS, math.ceil(per_node / _NODE_COLUMNS)
    width, height = columns * (_DEVICE + _GAP) + 8, rows * (_DEVICE + _GAP) + 22
    nodes = [*cell((0.5, 0.5, width - 1, height - 1), fill=shapes.PANEL, stroke=shapes.LINE, radius=6)]
    nodes.append(shapes.text(6, 13, _("node {number}", number=number), size=_SMALL, fill=shapes.SOFT_INK))
    for at in range(per_node):
        device = number * per_node + at
        told, data = devices.get(device, ("", -1))
        place = 5 + at % columns * (_DEVICE + _GAP), 18 + at // columns * (_DEVICE + _GAP), _DEVICE, _DEVICE
        fill = shapes.EMPTY if data < 0 else shade(data)
        nodes += cell(place, *words_in(place, told), fill=fill, stroke_width=0.7)
    return Drawing(width, height, tuple(nodes))


def _sides(tensor: CutTensor) -> tuple[str | None, str | None]:
    """Returns the axis that runs down and the one that runs right; of vectors none runs down."""
    axes = [axis for axis in tensor.axes if axis not in _NEVER_SPLIT]
    return (axes[0], axes[-1]) if len(axes) > 1 else (None, axes[0] if axes else None)


def _length(tensor: CutTensor, axis: str | None) -> float:
    if axis is None:
        return _THICKNESS
    at = tensor.axes.index(axis)
    length = min(_LEAST + _A_DOUBLING * math.log2(tensor.sharding.global_shape[at]), _MOST)
    return max(length, _LEAST_BLOCK * tensor.sharding.layout.num_shards(at))


def _place(tensor: CutTensor, block: Block) -> Place:
    (y, height), (x, width) = (_span(tensor, axis, block) for axis in _sides(tensor))
    return x, y, width, height


def _span(tensor: CutTensor, axis: str | None, block: Block) -> tuple[float, float]:
    """Returns where a block starts along an axis, and its length."""
    whole = _length(tensor, axis)
    if axis is None:
        return 0.0, whole
    at = tensor.axes.index(axis)
    unit, part = whole / tensor.sharding.global_shape[at], block.index[at]
    return part.start * unit, (part.stop - part.start) * unit
