"""The picture of a ring: a row for each device, a column for each chunk, arrows for what was just sent."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell, colour
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import devices_text
from course_lib.specs.sharding import block_label
from lessons.layouts.all_reduce.ring import ALL_GATHER, Holding, RingMoment

_CELL, _CELL_HEIGHT, _COLUMN_GAP, _ROW_GAP, _HEADER = 72.0, 30.0, 6.0, 20.0, 16.0
_LOOP, _SIZE = 14.0, 12.0


def legend(moment: RingMoment) -> list[str]:
    """Returns how to read the chunks."""
    told = [_("A row is a device, a column a chunk. Colors and numbers say whose values it holds.")]
    if moment.ring.kind == ALL_GATHER:
        return told
    return [
        *told,
        _("Stripes mark a partial sum, not yet the sum over all devices."),
        _("Dashed: sent on and not needed any more."),
    ]


def chunks_drawing(moment: RingMoment) -> Drawing:
    """Returns every device with its chunks, and the arrows of what was sent in the last step."""
    devices = range(moment.ring.num_devices)
    left = arranging.text_width(devices_text([devices[-1]]), _SIZE) + 10
    right, bottom = left + _x(devices[-1]) + _CELL, _y(devices[-1]) + _CELL_HEIGHT + _ROW_GAP
    names = (
        shapes.text(
            left + _x(chunk) + _CELL / 2,
            12,
            block_label(chunk),
            anchor="middle",
            fill=shapes.SOFT_INK,
            bold=True,
        )
        for chunk in devices
    )
    rows = (_row(moment, device_id, left) for device_id in devices)
    loop = _loop(right + 4, _y(0) + _CELL_HEIGHT / 2, bottom - _ROW_GAP - _CELL_HEIGHT / 2)
    return Drawing(right + 4 + _LOOP, bottom, (*names, *rows, loop, *_arrows(moment, left)))


def _row(moment: RingMoment, device_id: int, left: float) -> Node:
    """Returns a device with what it has of each chunk."""
    name = shapes.text(0, _y(device_id) + _CELL_HEIGHT / 2 + 4, devices_text([device_id]))
    new = [message.chunk for message in moment.messages if message.receiver == device_id]
    chunks = (
        _chunk(holding, moment.ring.sources(chunk), new=chunk in new).at(left + _x(chunk), _y(device_id))
        for chunk, holding in enumerate(moment.holdings[device_id])
    )
    return node("g", name, *chunks, class_="holder", data_device=str(device_id))


def _chunk(holding: Holding, slots: Sequence[int], *, new: bool) -> Drawing:
    """Returns a chunk on a device, with a slot for each device whose values belong in it."""
    width, idle = _CELL / len(slots), holding.sent_on or not holding.sources
    kind = "whole" if len(holding.sources) == len(slots) else "idle" if idle else "partial"
    held = [
        Drawing(width, _CELL_HEIGHT, _slot(device_id, width, kind)).at(at * width, 0)
        for at, device_id in enumerate(slots)
        if device_id in holding.sources
    ]
    edge = shapes.rectangle(
        *(0, 0, _CELL, _CELL_HEIGHT),
        fill="none",
        stroke=shapes.INK if new else shapes.LINE if idle else shapes.SOFT_INK,
        stroke_width=2.5 if new else 1,
        dashes="3 3" if idle else None,
    )
    return Drawing(_CELL, _CELL_HEIGHT, (node("g", *held, edge, class_=f"chunk {kind}"),))


def _slot(device_id: int, width: float, kind: str) -> tuple[Node, ...]:
    """Returns the values of one device in a chunk, with its number: striped in a partial sum."""
    size, partial = min(_SIZE, width * 1.1), kind == "partial"
    digit = Line(str(device_id), size=size, bold=kind != "idle", halo=partial)
    stripes = shapes.stripes(width, _CELL_HEIGHT, stroke=colour(device_id)) if partial else None
    fill = device_id if kind == "whole" else "none"
    return cell((0, 0, width, _CELL_HEIGHT), digit, fill=fill, stripes=stripes, stroke_width=0)


def _arrows(moment: RingMoment, left: float) -> list[Node]:
    """Returns an arrow for each message; that of the last device leaves below and comes in above."""
    arrows = []
    for message in moment.messages:
        x = left + _x(message.chunk) + _CELL / 2
        arrows.append(_down(x, _y(message.sender) + _CELL_HEIGHT + 1, _ROW_GAP - 3))
        if not message.receiver:
            arrows.append(_down(x, _y(0) - _ROW_GAP + 2, _ROW_GAP - 4))
    return arrows


def _down(x: float, y: float, length: float) -> Node:
    line = f"M{number(x)} {number(y)}v{number(length - 6)}"
    head = f"M{number(x - 5)} {number(y + length - 8)}h10l-5 8z"
    line_node = node("path", d=line, stroke=shapes.INK, stroke_width=2.5)
    return node("g", line_node, node("path", d=head, fill=shapes.INK), class_="sent")


def _loop(x: float, top: float, bottom: float) -> Node:
    """Returns the line from the last device back to the first, which closes the ring."""
    line = f"M{number(x)} {number(bottom)}h{number(_LOOP - 4)}V{number(top)}h-{number(_LOOP - 10)}"
    head = f"M{number(x + 7)} {number(top - 3.5)}l-6 3.5l6 3.5z"
    line_node = node("path", d=line, fill="none", stroke=shapes.SOFT_INK, stroke_width=1.2)
    return node("g", line_node, node("path", d=head, fill=shapes.SOFT_INK), class_="loop")


def _x(chunk: int) -> float:
    return chunk * (_CELL + _COLUMN_GAP)


def _y(device_id: int) -> float:
    return _HEADER + _ROW_GAP + device_id * (_CELL_HEIGHT + _ROW_GAP)
