"""The picture of an all-reduce: a lane for each device, from its partial sum over the sum to its copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.tensors import value_width, values_drawing
from course_lib.pictures.text import array_text, devices_text, marked
from course_lib.specs.blocks import block_label
from course_lib.specs.components import Array

if TYPE_CHECKING:
    from lessons.layouts.one_step.reduction import Reduction

_LANE_GAP, _HEADING_GAP, _ARROWS, _LEAST_WIDTH = 7.0, 16.0, 44.0, 440.0
_LABEL_SIZE, _LABEL_WIDTH = 13.0, 22.0


def reduction_figure(reduction: Reduction) -> Figure:
    """Returns the picture of an all-reduce."""
    title = _("All-reduce over {name} on the mesh {mesh}", name=reduction.mesh_dim, mesh=reduction.mesh)
    lanes = _headed_lanes(reduction)
    summary, sentence, agrees = _summary(reduction), reduction.sentence, not reduction.wrong_devices
    return headed(
        title,
        [lanes],
        [summary, *_lines(reduction), "", sentence],
        width=max(lanes.width, _LEAST_WIDTH),
        says=[summary, _("Stripes mark a partial sum that waits to be added.")],
        verdict=marked(sentence, agrees=agrees),
        agrees=agrees,
    )


def _summary(reduction: Reduction) -> str:
    return _(
        "Each device adds an array of shape {shape} and receives the sum.", shape=reduction.partials[0].shape
    )


def _lines(reduction: Reduction) -> list[str]:
    """Returns the partial sums, the sum and the copies, each with its devices and values."""
    partials = [f"  {_device(at)}  {_values(reduction, each)}" for at, each in enumerate(reduction.partials)]
    devices = devices_text(range(reduction.mesh.size))
    total = f"  {block_label(0)}  {devices}  {_values(reduction, reduction.total)}"
    copies = [
        f"  {_device(at)}  {block_label(held)}  {_values(reduction, copy)}"
        for at, (held, copy) in enumerate(zip(reduction.holdings, reduction.copies, strict=True))
    ]
    parts = zip(_headings(), (partials, [total], copies), strict=True)
    return [line for heading, part in parts for line in ("", heading, *part)]


def _headings() -> tuple[str, str, str]:
    return _("Partial sums"), _("Sum"), _("Copies")


def _device(device_id: int) -> str:
    return devices_text([device_id])


def _values(reduction: Reduction, array: Array) -> str:
    return array_text(array, reduction.form)


@dataclass(frozen=True)
class _Places:
    """Where the columns of the lanes stand, and how large the box of an array is."""

    partials: float
    total: float
    copies: float
    width: float
    box_width: float
    box_height: float
    value_width: float


def _places(reduction: Reduction) -> _Places:
    arrays = (*reduction.partials, reduction.total, *reduction.copies)
    width = value_width(arrays, reduction.form)
    box = values_drawing(arrays[0], "none", width)
    widths = [max(arranging.text_width(heading, 12), box.width) for heading in _headings()]
    partials = arranging.text_width(_device(reduction.mesh.size - 1), 12) + 10
    total = partials + widths[0] + _ARROWS
    copies = total + widths[1] + _ARROWS
    return _Places(partials, total, copies, copies + widths[2] + _LABEL_WIDTH, box.width, box.height, width)


def _headed_lanes(reduction: Reduction) -> Drawing:
    places = _places(reduction)
    lefts = (places.partials, places.total, places.copies)
    heads = (
        shapes.text(left, 12, heading, fill=shapes.SOFT_INK, bold=True)
        for left, heading in zip(lefts, _headings(), strict=True)
    )
    headings = Drawing(places.width, 14, tuple(heads))
    return arranging.stacked([headings, _lanes(reduction, places)], _HEADING_GAP)


def _lanes(reduction: Reduction, places: _Places) -> Drawing:
    """Returns the lanes of the devices, the sum in their middle, and the arrows between them."""
    count, step = reduction.mesh.size, places.box_height + _LANE_GAP
    height = max(step * count - _LANE_GAP, places.box_height + 2 * _LABEL_SIZE)
    top = (height - step * count + _LANE_GAP) / 2
    nodes: list[Node] = []
    for device_id in range(count):
        y = top + step * device_id
        wrong = device_id in reduction.wrong_devices
        nodes += _arrows(places, y + places.box_height / 2, height / 2, wrong=wrong)
        nodes += _lane(reduction, device_id, places, y)
    return Drawing(places.width, height, (*nodes, *_sum(reduction, places, height)))


def _lane(reduction: Reduction, device_id: int, places: _Places, y: float) -> list[Node]:
    """Returns a device with its partial sum, which stripes mark as one, and its copy of the sum."""
    held = reduction.holdings[device_id]
    label = block_label(held)
    middle, data = y + places.box_height / 2 + 4, {"data_device": str(device_id)}
    stripes = _stripes(reduction, device_id, places)
    partial = _box(reduction, reduction.partials[device_id], places, shapes.PANEL, stripes)
    copy = _box(reduction, reduction.copies[device_id], places, held)
    return [
        shapes.text(0, middle, _device(device_id), fill=shapes.INK),
        node("g", partial.at(places.partials, y), class_="partial", **data),
        node("g", copy.at(places.copies, y), class_="copy", **data),
        shapes.text(places.copies + places.box_width + 7, middle, label, size=_LABEL_SIZE, bold=True),
    ]


def _sum(reduction: Reduction, places: _Places, height: float) -> list[Node]:
    total = _box(reduction, reduction.total, places, 0)
    y, middle = (height - places.box_height) / 2, places.total + places.box_width / 2
    left = places.total - 11
    return [
        node("g", total.at(places.total, y), class_="sum"),
        shapes.text(middle, y - 6, block_label(0), size=_LABEL_SIZE, anchor="middle", bold=True),
        node("circle", cx=left, cy=height / 2, r=8, fill=shapes.PANEL, stroke=shapes.SOFT_INK),
        shapes.text(left, height / 2 + 5, "+", size=15, anchor="middle", bold=True),
    ]


def _arrows(places: _Places, lane: float, middle: float, *, wrong: bool) -> list[Node]:
    """Returns the lines from a partial sum to the sum, and from there to the copy, dashed to a wrong one."""
    start, end = places.partials + places.box_width, places.total - 18
    into = f"M{number(start + 2)} {number(lane)}L{number(end)} {number(middle)}"
    start, end = places.total + places.box_width, places.copies
    out = f"M{number(start + 2)} {number(middle)}L{number(end - 10)} {number(lane)}h4"
    head = f"M{number(end - 8)} {number(lane - 3.5)}l6 3.5l-6 3.5z"
    dashes = "3 4" if wrong else None
    return [
        node("path", d=into, fill="none", stroke=shapes.SOFT_INK, stroke_width=1.2),
        node("path", d=out, fill="none", stroke=shapes.SOFT_INK, stroke_width=1.2, stroke_dasharray=dashes),
        *([] if wrong else [node("path", d=head, fill=shapes.SOFT_INK)]),
    ]


def _box(
    reduction: Reduction, array: Array, places: _Places, fill: str | int, stripes: Node | None = None
) -> Drawing:
    """Returns an array as its values in a cell."""
    halo, size = stripes is not None, (places.box_width, places.box_height)
    values = values_drawing(array, "none", places.value_width, reduction.form, halo=halo).nodes
    return Drawing(*size, (*cell((0, 0, *size), fill=fill, stripes=stripes), *values))


def _stripes(reduction: Reduction, device_id: int, places: _Places) -> Node:
    """Returns stripes in a colour of the device's own, which no sum and no copy has."""
    free = shapes.PALETTE[1 + max(reduction.holdings) :] or shapes.PALETTE
    rounds, at = divmod(device_id, len(free))
    size = places.box_width, places.box_height
    return shapes.stripes(*size, stroke=free[at], falling=bool(rounds % 2))
