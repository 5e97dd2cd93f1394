"""A training step as lanes: a lane a device, time to the right, exchanges as bands that join the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from course_lib.i18n import _, join_sentences, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell, colour
from course_lib.pictures.communication_text import collective_lines, reasons, what_it_does
from course_lib.pictures.shapes import Node, node
from course_lib.specs.collectives import Collective
from course_lib.specs.communication import Rule, Step
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from course_lib.specs.sharding import Sharding, block_label
from course_lib.specs.step import Event, Phase

_BOX, _LANE, _GAP, _LINE, _PLACE = 15.0, 20.0, 6.0, 5.0, 12.0
_SIZE, _MOST_WIDTH, _LIT = 11.0, 300.0, "#FFF1B8"


def lanes_drawings(
    mesh: MeshSpec,
    events: Sequence[Event],
    now: int | None,
    devices: Sequence[int] = (),
    heads: Sequence[Sequence[str]] = (),
) -> list[Drawing]:
    """Returns the lanes in pieces that flow like words, none wider than a telephone.

    Args:
        mesh: the devices.
        events: what happens in the step, in order.
        now: the number of the event that is lit; what comes after it is empty. None where all is drawn, and
            the reader lights one event after another.
        devices: the numbers of the devices where they are not 0, 1, 2, ...
        heads: what stands over each event, where that is not `event_head`.
    """
    heads = heads or [event_head(event) for event in events]
    top = max(arranging.text_width(line, _SIZE) for head in heads for line in head) + 8
    names, drawings = _names(mesh, top, devices or range(mesh.size)), []
    for phases in ((Phase.FORWARD,), (Phase.BACKWARD, Phase.UPDATE)):
        of_pass = [(at, event) for at, event in enumerate(events) if event.phase in phases]
        happens = {event.phase: phase_names()[event.phase] for _at, event in of_pass}
        columns = [
            _moment(at, _column(event, heads[at], top, -1))
            if now is None
            else _column(event, heads[at], top, at - now)
            for at, event in of_pass
        ]
        for part in _parts(columns, _MOST_WIDTH - names.width):
            drawings.append(arranging.titled(" · ".join(happens.values()), _lanes([names, *part], top)))
    *others, last = drawings
    return [*(replace(drawing, width=drawing.width + _GAP) for drawing in others), last]


def phase_names() -> dict[Phase, str]:
    """Returns what the parts of a step are called."""
    names = _("Forward pass"), _("Backward pass"), _("Update")
    return dict(zip(Phase, names, strict=True))


def event_lines(events: Sequence[Event], now: int) -> list[str]:
    """Returns in words what is drawn: each exchange so far, and who holds which part of what is new."""
    exchanges = [
        labelled(event.tensor, _(", ").join(collective_lines(event.collective)[:2]))
        for event in events[: now + 1]
        if event.collective
    ]
    for event in events[now : now + 1]:
        held = " ".join(block_label(number) for number in _identities(event.result))
        exchanges.append(labelled(_("On the devices"), held))
    return exchanges


def event_head(event: Event) -> list[str]:
    """Returns the tensor, and over which mesh dimensions how many bytes are exchanged."""
    if event.collective is None:
        return [event.tensor]
    kind = [] if event.is_sum else [str(event.collective.kind)]
    return [
        event.tensor,
        " ".join([*kind, *event.collective.mesh_dims, "·", f"{event.collective.payload_bytes:,} B"]),
    ]


def event_sentence(event: Event) -> str:
    """Returns what happens, and why an exchange is needed."""
    if event.phase is Phase.UPDATE:
        return _(
            "Each device subtracts its part of the gradients from its part of the variables. Nothing is sent."
        )
    if event.collective is None:
        return _(
            "Each device computes its part of {tensor}, of shape {local_shape}. Nothing is sent.",
            tensor=f"`{event.tensor}`",
            local_shape=event.result.local_shape,
        )
    return join_sentences([_why(event, event.collective), what_it_does(event.collective.kind)])


def _why(event: Event, collective: Collective) -> str:
    """Returns why a device needs what others have."""
    tensor = f"`{event.tensor}`"
    axes = {BATCH: _("rows of the batch"), "features": _("features"), "hidden": _("hidden units")}
    if not event.is_sum:
        change = Step(tensor, Rule.GATHER, event.source, event.result, collective)
        return reasons(change)[Rule.GATHER]
    if not event.axis:
        return _("Each device has only some of the terms of every sum in {tensor}.", tensor=tensor)
    return _(
        "{tensor} adds up over {terms} {axis}; a device has {part} of them.",
        tensor=tensor,
        terms=f"{event.terms:,}",
        axis=axes[event.axis],
        part=f"{event.terms // collective.group_size:,}",
    )


def _names(mesh: MeshSpec, top: float, devices: Sequence[int]) -> Drawing:
    """Returns the number of each device, and its position along each mesh dimension."""
    x, places = max(_BOX, arranging.text_width(str(devices[-1]), 12) + 8), {}
    for name, size in mesh.dims:
        if size > 1:
            places[name] = x
            x += max(_PLACE, arranging.text_width(str(size - 1), _SIZE) + 5)
    nodes = [_upright(left + 7, top, name, shapes.SOFT_INK) for name, left in places.items()]
    for device_id in range(mesh.size):
        y = top + _LANE * device_id + _BOX - 4
        nodes.append(shapes.text(0, y, str(devices[device_id]), bold=True))
        coords = mesh.coords(device_id)
        for name, left in places.items():
            nodes.append(shapes.text(left, y, str(coords[name]), size=_SIZE, fill=shapes.SOFT_INK))
    return Drawing(x - 3, top + _LANE * mesh.size, tuple(nodes))


def _parts(columns: Sequence[Drawing], room: float) -> list[Sequence[Drawing]]:
    """Returns the columns in as few parts as fit into the room, about equally many in each."""
    for count in range(1, len(columns) + 1):
        cuts = pairwise(len(columns) * part // count for part in range(count + 1))
        parts = [columns[first:end] for first, end in cuts]
        if all(sum(each.width + _GAP for each in part) <= room for part in parts):
            return parts
    return [[each] for each in columns]


def _lanes(columns: Sequence[Drawing], top: float) -> Drawing:
    """Returns columns beside each other, and behind them a lane for each device."""
    beside = arranging.beside(columns, _GAP)
    middles = range(int(top + _BOX / 2), int(beside.height), int(_LANE))
    lines = "".join(f"M{shapes.number(columns[0].width)} {y}H{shapes.number(beside.width)}" for y in middles)
    return replace(beside, nodes=(node("path", d=lines, stroke=shapes.EMPTY, stroke_width=4), *beside.nodes))


def _column(event: Event, head: Sequence[str], top: float, when: int) -> Drawing:
    """Returns an event under its head: boxes before the exchange, its bands, and boxes after it.

    It is done where `when` is below 0, lit where it is 0, and still to come above.
    """
    collective = event.collective
    summed = collective.mesh_dims if collective and event.is_sum else ()
    parts = [_boxes(event.source, summed, empty=when > 0)]
    if collective is not None:
        bands = _bands(collective, shapes.LINE if when > 0 else shapes.INK, 2.5 if when == 0 else 1.2)
        parts += [bands, _boxes(event.result, (), empty=when > 0)]
    drawn = arranging.beside(parts, 1)
    ink, left = shapes.SOFT_INK if when > 0 else shapes.INK, drawn.width / 2 + (-3 if collective else 4)
    heads = [_upright(left + 13 * at, top, line, ink, bold=when == 0) for at, line in enumerate(head)]
    height = top + drawn.height
    light = [_light(drawn.width, height)] if when == 0 else []
    return Drawing(drawn.width, height, (*light, *heads, drawn.at(0, top)))


def _moment(number: int, column: Drawing) -> Drawing:
    """Returns a column that a page lights when the reader comes to its event."""
    light = node("g", _light(column.width, column.height), class_="light", visibility="hidden")
    nodes = (node("g", light, *column.nodes, data_moment=str(number)),)
    return replace(column, nodes=nodes)


def _light(width: float, height: float) -> Node:
    return shapes.rectangle(-4, -4, width + 8, height + 4, fill=_LIT, stroke_width=0, radius=5)


@lru_cache(512)  # the steps of many plans have most of their columns in common
def _boxes(sharding: Sharding, summed: tuple[str, ...], *, empty: bool) -> Drawing:
    """Returns what each device has, equal data in equal colours, partial sums with stripes."""
    mesh, nodes = sharding.mesh, []
    if empty:
        outlines = (f"M0 {shapes.number(_LANE * at)}h{_BOX:g}v{_BOX:g}h-{_BOX:g}z" for at in range(mesh.size))
        nodes = [
            node("path", d="".join(outlines), fill=shapes.PANEL, stroke=shapes.LINE, stroke_dasharray="2 2")
        ]
    for device_id, data in enumerate(() if empty else _identities(sharding, summed)):
        place = 0.0, 0.0, _BOX, _BOX
        if summed:
            stripes = shapes.stripes(_BOX, _BOX, stroke=colour(data))
            line = Line(block_label(data).lower(), 3.5, 9.5, halo=True)
            shown = cell(place, line, fill=shapes.PANEL, stripes=stripes)
        else:
            shown = cell(place, Line(block_label(data), 3.5, 9.5), fill=data)
        nodes.append(Drawing(_BOX, _BOX, shown).at(0, _LANE * device_id))
    return Drawing(_BOX, _LANE * mesh.size, tuple(nodes))


def _identities(sharding: Sharding, summed: Sequence[str] = ()) -> list[int]:
    """Returns a number for what each device has: equal numbers are equal data, and so no two partial sums."""
    mesh, numbers = sharding.mesh, dict[object, int]()
    return [
        numbers.setdefault(
            (sharding.layout.block(device_id), *(mesh.coords(device_id)[name] for name in summed)),
            len(numbers),
        )
        for device_id in range(mesh.size)
    ]


def _bands(collective: Collective, ink: str, thickness: float) -> Drawing:
    """Returns a line for each group of devices, with a dot on the lane of each; none crosses another one."""
    ends: list[int] = []  # of the last group at each place from left to right
    lines = dots = ""
    for group in collective.groups:
        place = next((at for at, end in enumerate(ends) if end < group[0]), len(ends))
        ends[place : place + 1] = [group[-1]]
        x, ys = f"M{_LINE * (place + 0.5):g}", [f"{_LANE * device_id + _BOX / 2:g}" for device_id in group]
        lines += f"{x} {ys[0]}V{ys[-1]}"
        dots += "".join(f"{x} {y}h0" for y in ys)
    band = node("path", d=lines, stroke=ink, stroke_width=thickness)
    members = node("path", d=dots, stroke=ink, stroke_width=2 * thickness + 2, stroke_linecap="round")
    return Drawing(_LINE * len(ends), _LANE * collective.mesh.size, (band, members))


def _upright(x: float, bottom: float, content: str, ink: str, *, bold: bool = False) -> Node:
    """Returns a line of text that runs up from the boxes."""
    place = f"translate({shapes.number(x)} {shapes.number(bottom - 6)}) rotate(-90)"
    return node("g", shapes.text(0, 0, content, size=_SIZE, fill=ink, bold=bold), transform=place)
