"""An all-reduce of eight devices by a ring and by two trees: which message waits for which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.shapes import Node, node, number

NUM_DEVICES = 8
_SIZE, _RADIUS, _ACROSS, _DOWN = 22.0, 84.0, 29.0, 50.0

Message = tuple[int, int]  # who sends, and to whom
Point = tuple[float, float]


@dataclass(frozen=True)
class Chain:
    """The messages of an all-reduce that must follow one another: sums, and then the total.

    Attributes:
        title: what it is, and which part of the payload its messages carry.
        rounds: the messages of each round; those of the first half carry sums.
        places: where each device stands.
        colour: of the data.
        others: whether other parts of the payload go round at the same time.
    """

    title: str
    rounds: Sequence[Sequence[Message]]
    places: Sequence[Point]
    colour: str
    others: Sequence[Message] = ()

    def done(self, step: int) -> int:
        """Returns how many rounds are over after so many steps."""
        return min(step, len(self.rounds))

    def states(self, step: int) -> list[str]:
        """Returns what each device has then: "own" values, a "sum", a sum "sent" on, the "total"."""
        has, half = ["own"] * NUM_DEVICES, len(self.rounds) // 2
        for at, messages in enumerate(self.rounds[: self.done(step)], start=1):
            for sender, receiver in messages:
                has[sender] = "sent" if at <= half else "total"
                has[receiver] = "sum" if at < half else "total"
        return has

    def messages(self, step: int) -> Sequence[Message]:
        """Returns those of the last round, if there was one."""
        return self.rounds[step - 1] if 0 < step <= len(self.rounds) else ()


def ring() -> Chain:
    """Returns one eighth of the payload on its way round a ring, twice.

    >>> [messages for messages in ring().rounds[5:9]]
    [[(6, 7)], [(7, 0)], [(0, 1)], [(1, 2)]]
    """
    count = NUM_DEVICES
    rounds = [[((at + 1) % count, (at + 2) % count)] for at in range(2 * (count - 1))]
    angles = [2 * math.pi * device / count for device in range(count)]
    places = [(_RADIUS * (1 + math.sin(angle)), _RADIUS * (1 - math.cos(angle))) for angle in angles]
    around = [(device, (device + 1) % count) for device in range(count)]
    return Chain(_("Ring: one eighth of the payload"), rounds, places, shapes.PALETTE[2], around)


def trees() -> list[Chain]:
    """Returns two trees with half of the payload each, the second one with the devices in reverse order.

    Source: https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/.
    """
    blue, orange, *_others = shapes.PALETTE
    first = _tree(_("Tree 1: half of the payload"), blue, is_reversed=False)
    return [first, _tree(_("Tree 2: the other half"), orange, is_reversed=True)]


def drawing(chain: Chain, step: int) -> Drawing:
    """Returns the devices and the messages between them after so many steps."""
    now, states = chain.messages(step), chain.states(step)
    links = {tuple(sorted(message)) for messages in chain.rounds for message in messages}
    nodes = [_line(chain, *ends) for ends in sorted(links)]
    if now:
        nodes += [_arrow(chain, each, shapes.SOFT_INK, 1.2) for each in chain.others if each not in now]
    nodes += [_arrow(chain, each, shapes.INK, 3) for each in now]
    devices = (_device(device, state, chain.colour) for device, state in enumerate(states))
    nodes += [device.at(*place) for device, place in zip(devices, chain.places, strict=True)]
    width, height = (max(place[axis] for place in chain.places) + _SIZE for axis in (0, 1))
    return Drawing(width, height, tuple(nodes))


def _tree(title: str, colour: str, *, is_reversed: bool) -> Chain:
    """Returns a tree in which every odd number is a leaf: 0, below it 4, then 2 and 6."""
    depths = {0: 0, 4: 1, 2: 2, 6: 2, **dict.fromkeys((1, 3, 5, 7), 3)}
    parents = {4: 0, 2: 4, 6: 4, 1: 2, 3: 2, 5: 6, 7: 6}

    def named(device: int) -> int:
        return NUM_DEVICES - 1 - device if is_reversed else device

    up = [
        [(named(child), named(parent)) for child, parent in parents.items() if depths[child] == depth]
        for depth in (3, 2, 1)
    ]
    down = [[(parent, child) for child, parent in messages] for messages in reversed(up)]
    places = [(_ACROSS * device, _DOWN * depths[named(device)]) for device in range(NUM_DEVICES)]
    return Chain(title, [*up, *down], places, colour)


def _device(device: int, state: str, colour: str) -> Drawing:
    """Returns a device: filled with the total, striped with a sum, dashed where it sent its sum on."""
    line = Line(str(device), size=11, bold=state == "total", halo=state == "sum")
    stripes = shapes.stripes(_SIZE, _SIZE, stroke=colour) if state == "sum" else None
    fill = {"own": "#FFFFFF", "sum": shapes.PANEL, "sent": shapes.EMPTY, "total": colour}[state]
    dashes = "3 2" if state == "sent" else None
    return Drawing(_SIZE, _SIZE, cell((0, 0, _SIZE, _SIZE), line, fill=fill, stripes=stripes, dashes=dashes))


def _line(chain: Chain, one: int, other: int) -> Node:
    (x, y), (x2, y2) = (_middle(chain.places[device]) for device in (one, other))
    line = f"M{number(x)} {number(y)}L{number(x2)} {number(y2)}"
    return node("path", d=line, stroke=shapes.LINE, stroke_width=1)


def _arrow(chain: Chain, message: Message, ink: str, thickness: float) -> Node:
    """Returns an arrow from edge to edge of two devices."""
    start, end = (_middle(chain.places[device]) for device in message)
    length = math.dist(start, end)
    across, down = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    away = (_SIZE / 2 + 1) / max(abs(across), abs(down))
    begin = start[0] + away * across, start[1] + away * down
    tip = end[0] - away * across, end[1] - away * down
    head = 4 + 1.5 * thickness
    neck = tip[0] - head * across, tip[1] - head * down
    sides = [(neck[0] + side * head / 2 * down, neck[1] - side * head / 2 * across) for side in (1, -1)]
    line = f"M{_at(begin)}L{_at(neck)}"
    point = f"M{_at(tip)}L{_at(sides[0])}L{_at(sides[1])}z"
    shaft = node("path", d=line, stroke=ink, stroke_width=thickness)
    return node("g", shaft, node("path", d=point, fill=ink), class_="sent")


def _middle(place: Point) -> Point:
    return place[0] + _SIZE / 2, place[1] + _SIZE / 2


def _at(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
