"""The picture of four collectives: what each of four devices holds before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.text import devices_text
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.sharding import block_label

_DEVICES = range(4)
_CELL, _HEIGHT, _GAP, _ROW, _ARROW = 26.0, 20.0, 3.0, 26.0, 34.0

Cell = tuple[int, Sequence[int]]  # a chunk, and the devices whose values are in it: none where it is missing
Holds = Callable[[int, int], Cell]  # of a device and of a place on it


def _own(device: int, place: int) -> Cell:
    return place, [device]


# What each device holds before and after.
_COLLECTIVES: dict[str, tuple[Holds, Holds]] = {
    "all-reduce": (_own, lambda _device, place: (place, _DEVICES)),
    "reduce-scatter": (_own, lambda device, place: (place, _DEVICES if place == device else [])),
    "all-gather": (
        lambda device, place: (place, [device] if place == device else []),
        lambda _device, place: (place, [place]),
    ),
    "all-to-all": (_own, lambda device, place: (device, [place])),
}


class FourCollectives(DrawsItself):
    """What four devices hold before and after an all-reduce and three other collectives. It draws itself."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def picture(self) -> Figure:
        """Returns for each collective a row for each device: before, and after."""
        panels = [arranging.titled(name, _panel(*both)) for name, both in _COLLECTIVES.items()]
        rows = [arranging.beside(panels[at : at + 2], gap=44) for at in (0, 2)]
        lines = [_("A letter is a chunk. The numbers behind it say whose values are in it.")]
        for name, (before, after) in _COLLECTIVES.items():
            lines += ["", name]
            for device in _DEVICES:
                lines.append(f"  {devices_text([device])}: {_told(before, device)} → {_told(after, device)}")
        says = [_("Each row is a device. Left: before. Right: after.")]
        title = _("Four collectives of four devices")
        return headed(title, [arranging.stacked(rows, gap=26)], lines, width=640, says=says)


def _told(holds: Holds, device: int) -> str:
    cells = [holds(device, place) for place in _DEVICES]
    return " ".join(block_label(chunk) + "".join(map(str, sources)) for chunk, sources in cells if sources)


def _panel(before: Holds, after: Holds) -> Drawing:
    left = arranging.text_width(devices_text([0]), 12) + 8
    width = len(_DEVICES) * (_CELL + _GAP) - _GAP
    right = left + width + _ARROW
    nodes = []
    for device in _DEVICES:
        y = device * _ROW
        nodes.append(shapes.text(0, y + _HEIGHT / 2 + 4, devices_text([device])))
        for place in _DEVICES:
            x = place * (_CELL + _GAP)
            nodes.append(_cell(*before(device, place)).at(left + x, y))
            nodes.append(_cell(*after(device, place)).at(right + x, y))
    middle = (len(_DEVICES) * _ROW - _ROW + _HEIGHT) / 2
    arrow = f"M{number(left + width + 8)} {number(middle)}h{number(_ARROW - 22)}m-6 -5l8 5l-8 5"
    nodes.append(node("path", d=arrow, fill="none", stroke=shapes.INK, stroke_width=2))
    return Drawing(right + width, len(_DEVICES) * _ROW, tuple(nodes))


def _cell(chunk: int, sources: Sequence[int]) -> Drawing:
    if not sources:
        edge = shapes.rectangle(0, 0, _CELL, _HEIGHT, fill="none", dashes="3 3")
        return Drawing(_CELL, _HEIGHT, (edge,))
    width = _CELL / len(sources)
    faces: list[Node] = []
    for at, device in enumerate(sources):
        faces += cell((at * width, 0, width, _HEIGHT), fill=device, stroke_width=0)
    label = Line(block_label(chunk), bold=True)
    return Drawing(_CELL, _HEIGHT, (*faces, *cell((0, 0, _CELL, _HEIGHT), label, fill="none")))
