"""Pictures of all-reduces: a ring beside two trees, two levels, and their time over the payload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import matplotlib.figure

from course_lib.i18n import _, labelled, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import devices_text
from course_lib.specs.sharding import block_label
from lessons.scale.how_long.ring_and_trees_explorer import RingBesideTrees

_CELL, _HEIGHT, _ROW, _ARROW, _SIZE = 24.0, 20.0, 25.0, 34.0, 12.0
_NODES, _IN_A_NODE, _BETWEEN_NODES = 2, 4, 12.0
_PHASES, _BETWEEN = 3, 2  # of which the second one leaves the nodes
_MILLISECOND = 1e-3
_PAYLOADS = tuple(10 ** (tenths / 10) for tenths in range(30, 101))  # 1 kB to 10 GB

Seconds = Callable[[int, float], float]  # of the number of devices and the bytes of the payload
Holding = dict[int, int]  # for each chunk that a device has, the values of how many devices are in it


def ring_beside_tree() -> RingBesideTrees:
    """Returns the explorer that counts the messages of a ring and of two trees."""
    return RingBesideTrees()


def time_against_payload(ring_seconds: Seconds, tree_seconds: Seconds) -> Picture:
    """Returns the time of an all-reduce over its payload, of 8 and of 512 devices, as curves.

    Args:
        ring_seconds: the time in a ring of so many devices, for a payload of so many bytes.
        tree_seconds: the same in a tree.
    """
    drawn = matplotlib.figure.Figure(figsize=(7, 3.8), layout="constrained")
    axes, figures = drawn.subplots(), []
    ways = zip((_("ring"), _("tree")), (ring_seconds, tree_seconds), STYLES, strict=False)
    for way, seconds, (colour, _dashes, _marker) in ways:
        for devices, dashes in ((8, "solid"), (512, (0, (5, 3)))):
            name = ngettext("{way} of {count} device", "{way} of {count} devices", devices, way=way)
            times = [seconds(devices, payload) for payload in _PAYLOADS]
            axes.loglog(_PAYLOADS, times, color=colour, linestyle=dashes, label=name)
            told = [_time(seconds(devices, 10.0**power)) for power in (3, 6, 9)]
            figures.append(
                labelled(name, _("{kilo} for 1 kB, {mega} for 1 MB, {giga} for 1 GB", **_named(told)))
            )
    axes.set_xlabel(_("payload"))
    axes.set_ylabel(_("time of an all-reduce"))
    axes.set_xticks(*_ticks(range(3, 11), {3: "kB", 6: "MB", 9: "GB"}))
    axes.set_yticks(
        *_ticks(range(-5, 2), {-6: "μs", -3: "ms", 0: "s"})
    )  # Greek mu: the Japanese font has no other
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    text = _(
        "Picture: the time of an all-reduce over its payload, in rings and trees of 8 and of 512 devices."
    )
    return Picture.of(drawn, text, _("; ").join(figures))


def two_levels() -> Figure:
    """Returns an all-reduce of two nodes of four devices: inside, between the nodes, inside."""
    columns = [
        [_holding(phase, device) for device in range(_NODES * _IN_A_NODE)] for phase in range(_PHASES + 1)
    ]
    says = [
        _("1. Inside each node: a reduce-scatter. Each device sends three quarters of the payload."),
        _("2. Between devices at the same position in their nodes: an all-reduce of one quarter."),
        _("3. Inside each node: an all-gather. Each device sends three quarters again."),
        _(
            "A letter is a piece. The number says how many devices' values are in it; stripes: the sum is"
            " not yet complete."
        ),
    ]
    lines = [
        labelled(devices_text([device]), " → ".join(_told(column[device]) for column in columns))
        for device in range(_NODES * _IN_A_NODE)
    ]
    title = _("An all-reduce on two levels")
    return headed(title, [_levels(columns)], [*says, *lines], width=620, says=says)


def _holding(phase: int, device: int) -> Holding:
    """Returns what a device has of the four chunks, before the first phase (0) or after one."""
    chunks, place = range(_IN_A_NODE), device % _IN_A_NODE
    return (
        dict.fromkeys(chunks, 1),
        {place: _IN_A_NODE},
        {place: _NODES * _IN_A_NODE},
        dict.fromkeys(chunks, _NODES * _IN_A_NODE),
    )[phase]


def _told(holding: Holding) -> str:
    return " ".join(f"{block_label(chunk)}{count}" for chunk, count in holding.items())


def _levels(columns: Sequence[Sequence[Holding]]) -> Drawing:
    """Returns a row for each device, a node's close together, and a column for each phase."""
    left = arranging.text_width(devices_text([0]), _SIZE) + 10
    across, down = _IN_A_NODE * _CELL, _IN_A_NODE * _ROW
    nodes: list[Node] = []
    for device in range(_NODES * _IN_A_NODE):
        y = device * _ROW + device // _IN_A_NODE * _BETWEEN_NODES
        nodes.append(shapes.text(0, y + _HEIGHT / 2 + 4, devices_text([device]), size=_SIZE))
        for phase, column in enumerate(columns):
            x = left + phase * (across + _ARROW)
            nodes += [each.at(x + chunk * _CELL, y) for chunk, each in _cells(column[device])]
    for phase in range(1, len(columns)):
        x = left + phase * (across + _ARROW) - _ARROW
        nodes += _arrows(phase, x, down)
    width = left + len(columns) * (across + _ARROW) - _ARROW
    return Drawing(width, _NODES * (down + _BETWEEN_NODES) - _BETWEEN_NODES, tuple(nodes))


def _cells(holding: Holding) -> Iterator[tuple[int, Drawing]]:
    """Yields each chunk: in full colour with the values of all devices, striped with those of some."""
    for chunk in range(_IN_A_NODE):
        count, place = holding.get(chunk, 0), (0.0, 0.0, _CELL - 2, _HEIGHT)
        partial = count < _NODES * _IN_A_NODE
        stripes = shapes.stripes(_CELL - 2, _HEIGHT, stroke=shapes.PALETTE[chunk]) if partial else None
        line = Line(f"{block_label(chunk)}{count}", size=11, bold=not partial, halo=partial)
        held = cell(place, line, fill=shapes.PANEL if partial else chunk, stripes=stripes)
        empty = (shapes.rectangle(*place, fill="none", dashes="3 3"),)
        yield chunk, Drawing(_CELL - 2, _HEIGHT, held if count else empty)


def _arrows(phase: int, x: float, down: float) -> list[Node]:
    """Returns the number of a phase: one for each node, or one between them, with an arrow."""
    height = _NODES * (down + _BETWEEN_NODES) - _BETWEEN_NODES
    between = phase == _BETWEEN
    middles = [height / 2] if between else [down / 2 - 2, height - down / 2 - 2]
    nodes = []
    for y in middles:
        line = f"M{number(x + 4)} {number(y)}h{number(_ARROW - 14)}m-6 -5l8 5l-8 5"
        nodes.append(node("path", d=line, fill="none", stroke=shapes.INK, stroke_width=2))
        nodes.append(
            shapes.text(x + _ARROW / 2 - 2, y - 8, str(phase), size=_SIZE, anchor="middle", bold=True)
        )
    return nodes


def _ticks(powers: Sequence[int], units: dict[int, str]) -> tuple[list[float], list[str]]:
    """Returns powers of ten and what they are called.

    >>> _ticks([5, 6], {3: "kB", 6: "MB"})
    ([100000.0, 1000000.0], ['100 kB', '1 MB'])
    """
    names = []
    for power in powers:
        unit = max(each for each in units if each <= power)
        names.append(f"{10 ** (power - unit)} {units[unit]}")
    return [10.0**power for power in powers], names


def _named(told: Sequence[str]) -> dict[str, str]:
    return dict(zip(("kilo", "mega", "giga"), told, strict=True))


def _time(seconds: float) -> str:
    """Returns a time in microseconds below a millisecond, and else in milliseconds.

    >>> _time(14e-6), _time(0.0144)
    ('14 µs', '14.4 ms')
    """
    return f"{1e3 * seconds:,.1f} ms" if seconds >= _MILLISECOND else f"{1e6 * seconds:,.0f} µs"
