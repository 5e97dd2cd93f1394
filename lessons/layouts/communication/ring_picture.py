"""The picture of a ring: a row for each device, a column for each chunk, arrows for what was just sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import colour
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import devices_text
from course_lib.specs.blocks import block_label
from lessons.layouts.communication import ring_text
from lessons.layouts.communication.ring import ALL_GATHER, Holding, RingMoment

_CELL, _CELL_HEIGHT, _COLUMN_GAP, _ROW_GAP, _HEADER = 72.0, 30.0, 6.0, 20.0, 16.0
_LOOP, _DIGIT_SIZE = 14.0, 12.0
_ARRAY, _BAR_HEIGHT, _BAR_GAP, _BAR_TEXT = 160.0, 16.0, 6.0, 12.0


def legend(moment: RingMoment) -> list[str]:
    """Returns how to read the chunks."""
    told = [_("A row is a device, a column a chunk. Colours and numbers say whose values it holds.")]
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
    left = arranging.text_width(devices_text([devices[-1]]), 12) + 10
    right, bottom = left + _x(devices[-1]) + _CELL, _y(devices[-1]) + _CELL_HEIGHT + _ROW_GAP
    middles = [left + _x(chunk) + _CELL / 2 for chunk in devices]
    names = (
        shapes.text(x, 12, block_label(chunk), anchor="middle", fill=shapes.SOFT_INK, bold=True)
        for chunk, x in enumerate(middles)
    )
    rows = (_row(moment, device_id, left) for device_id in devices)
    loop = _loop(right + 4, _y(0) + _CELL_HEIGHT / 2, bottom - _ROW_GAP - _CELL_HEIGHT / 2)
    return Drawing(right + 4 + _LOOP, bottom, (*names, *rows, loop, *_arrows(moment, left)))


def sent_drawing(moment: RingMoment) -> Drawing:
    """Returns the array, and what each device sends of it, chunk by chunk on the same scale."""
    ring, amounts = moment.ring, ring_text.amounts(moment)
    width = _ARRAY / ring.num_devices
    array = [_chunk(width, shapes.EMPTY)] * ring.num_devices
    sent = [_chunk_sent(moment, step, width) for step in range(1, ring.num_steps + 1)]
    left = max(arranging.text_width(label, _BAR_TEXT) for label in amounts) + 10
    bars = [
        _bar(label, arranging.beside(chunks, 0), amount, left)
        for (label, amount), chunks in zip(amounts.items(), (array, sent), strict=True)
    ]
    return arranging.stacked(bars, _BAR_GAP)


def _bar(label: str, bar: Drawing, amount: str, left: float) -> Drawing:
    """Returns a bar between its name and how many bytes it stands for."""
    middle, end = _BAR_HEIGHT / 2 + 4, left + bar.width + 8
    nodes = (
        shapes.text(0, middle, label, size=_BAR_TEXT),
        bar.at(left, 0),
        shapes.text(end, middle, amount, size=_BAR_TEXT, fill=shapes.SOFT_INK),
    )
    return Drawing(end + arranging.text_width(amount, _BAR_TEXT), _BAR_HEIGHT, nodes)


def _chunk_sent(moment: RingMoment, step: int, width: float) -> Drawing:
    """Returns the chunk of a step: striped if it was a partial sum, dashed if it is still to be sent."""
    if step > moment.step:
        return _chunk(width, "none", dashes="2 3")
    if moment.ring.phase(step) == ALL_GATHER:
        return _chunk(width, shapes.LINE)
    return _chunk(width, shapes.PANEL, shapes.stripes(width, _BAR_HEIGHT, stroke=shapes.SOFT_INK))


def _chunk(width: float, fill: str, *stripes: Node, dashes: str | None = None) -> Drawing:
    edge = shapes.rectangle(0, 0, width, _BAR_HEIGHT, fill=fill, stroke=shapes.SOFT_INK, dashes=dashes)
    return Drawing(width, _BAR_HEIGHT, (edge, *stripes))


def _row(moment: RingMoment, device_id: int, left: float) -> Node:
    """Returns a device with what it has of each chunk."""
    name = shapes.text(0, _y(device_id) + _CELL_HEIGHT / 2 + 4, devices_text([device_id]))
    new = [message.chunk for message in moment.messages if message.receiver == device_id]
    cells = (
        node(
            "g",
            _cell(holding, moment.ring.sources(chunk), new=chunk in new),
            transform=f"translate({number(left + _x(chunk))} {number(_y(device_id))})",
        )
        for chunk, holding in enumerate(moment.holdings[device_id])
    )
    return node("g", name, *cells, class_="holder", data_device=str(device_id))


def _cell(holding: Holding, slots: Sequence[int], *, new: bool) -> Node:
    """Returns a chunk on a device, with a slot for each device whose values belong in it."""
    width, idle = _CELL / len(slots), holding.sent_on or not holding.sources
    held = {at * width: device_id for at, device_id in enumerate(slots) if device_id in holding.sources}
    kind = "whole" if len(held) == len(slots) else "idle" if idle else "partial"
    edge = shapes.rectangle(
        *(0, 0, _CELL, _CELL_HEIGHT),
        fill="none",
        stroke=shapes.INK if new else shapes.LINE if idle else shapes.SOFT_INK,
        stroke_width=2.5 if new else 1,
        dashes="3 3" if idle else None,
    )
    faces = [] if idle else [_face(x, width, device_id, kind) for x, device_id in held.items()]
    digits = [_digits(held, width, kind)] if held else []
    return node("g", *faces, *digits, edge, class_=f"chunk {kind}")


def _face(x: float, width: float, device_id: int, kind: str) -> Node:
    """Returns the values of one device in a chunk: striped in a partial sum."""
    if kind == "whole":
        return shapes.rectangle(x, 0, width, _CELL_HEIGHT, fill=colour(device_id), stroke_width=0)
    lines = shapes.stripes(width, _CELL_HEIGHT, stroke=colour(device_id))
    return node("g", lines, transform=f"translate({number(x)})")


def _digits(held: Mapping[float, int], width: float, kind: str) -> Node:
    """Returns the numbers of the devices in one text, each in the middle of its slot."""
    idle = kind == "idle"
    tag, attributes, text = shapes.text(
        0,
        _CELL_HEIGHT / 2 + 4,
        "".join(map(str, held.values())),
        size=min(_DIGIT_SIZE, width * 1.1),
        anchor="middle",
        fill=shapes.SOFT_INK if idle else shapes.INK,
        bold=not idle,
        halo=kind == "partial",
    )
    return [tag, {**attributes, "x": " ".join(number(x + width / 2) for x in held)}, text]


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
