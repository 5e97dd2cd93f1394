"""The curve of a step's time against the number of devices, on scales where a doubling is a step."""

from __future__ import annotations

import math
from collections.abc import Mapping

from course_lib.i18n import _, labelled, ngettext
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.shapes import Node, node
from lessons.scale.plan_bars import time_text

_LEFT, _RIGHT, _TOP, _BOTTOM, _ACROSS, _DOWN, _SIZE = 58, 68, 18, 24, 30, 150, 12.0
_INK = "#1F5FBF"

Times = Mapping[int, float | None]  # of the fastest plan by the number of devices; None where none fits


def scaling_drawing(times: Times, chosen: int) -> Drawing:
    """Returns the curve, with a mark at the chosen number; dashed how it would be without any loss."""
    sizes, fitting = list(times), {size: seconds for size, seconds in times.items() if seconds}
    least, most = _decades(fitting, sizes[-1])

    def place(size: int, seconds: float) -> tuple[int, int]:
        up = (math.log10(seconds) - least) / (most - least)
        return _LEFT + round(_ACROSS * math.log2(size / sizes[0])), _TOP + round(_DOWN * (1 - up))

    nodes = _axes(sizes, least, most)
    if fitting:
        first = min(fitting)
        ends = [place(first, fitting[first]), place(sizes[-1], fitting[first] * first / sizes[-1])]
        nodes.append(_line(ends, stroke=shapes.SOFT_INK, stroke_width=1, stroke_dasharray="4 4"))
    points = [place(size, seconds) for size, seconds in fitting.items()]
    nodes.append(_line(points, stroke=_INK, stroke_width=2))
    dots = "".join(f"M{x} {y}h0" for x, y in points)
    nodes.append(node("path", d=dots, stroke=_INK, stroke_width=7, stroke_linecap="round"))
    for size in times:
        if size not in fitting:
            x, _y = place(size, 10.0**most)
            mark = shapes.text(x, _TOP + _DOWN - 6, "✗", size=_SIZE, anchor="middle", fill=shapes.ALARM)
            nodes.append(mark)
    if chosen in fitting:
        nodes += _mark(*place(chosen, fitting[chosen]), time_text(fitting[chosen]))
    width = _LEFT + _ACROSS * (len(sizes) - 1) + _RIGHT
    return Drawing(width, _TOP + _DOWN + _BOTTOM, tuple(nodes))


def scaling_lines(times: Times) -> list[str]:
    """Returns the same in words, a line a number of devices."""
    return [
        labelled(
            ngettext("{told} device", "{told} devices", size, told=f"{size:,}"),
            time_text(seconds) if seconds else _("no plan fits"),
        )
        for size, seconds in times.items()
    ]


def _decades(fitting: Mapping[int, float], last: int) -> tuple[int, int]:
    """Returns the powers of ten between which all times lie, also without any loss."""
    if not fitting:
        return 0, 1
    first = min(fitting)
    seconds = [*fitting.values(), fitting[first] * first / last]
    least = math.floor(math.log10(min(seconds)))
    return least, max(math.ceil(math.log10(max(seconds))), least + 1)


def _axes(sizes: list[int], least: int, most: int) -> list[Node]:
    right, nodes, grid = _LEFT + _ACROSS * (len(sizes) - 1), list[Node](), ""
    for power in range(least, most + 1):
        y = _TOP + round(_DOWN * (most - power) / (most - least))
        grid += f"M{_LEFT} {y}H{right}"
        told = _("{number:,g} s", number=10.0**power)
        nodes.append(shapes.text(_LEFT - 8, y + 4, told, size=_SIZE, anchor="end"))
    for at, size in enumerate(sizes):
        x = _LEFT + at * _ACROSS
        grid += f"M{x} {_TOP}v{_DOWN}"
        if at % 3 == 0:
            nodes.append(shapes.text(x, _TOP + _DOWN + 18, f"{size:,}", size=_SIZE, anchor="middle"))
    return [node("path", d=grid, stroke=shapes.EMPTY, stroke_width=1), *nodes]


def _line(points: list[tuple[int, int]], **ink: str | float) -> Node:
    path = "L".join(f"{x} {y}" for x, y in points)
    return node("path", d=f"M{path}" if path else "", fill="none", **ink)


def _mark(x: int, y: int, told: str) -> list[Node]:
    """Returns a ring round the chosen point, and its time."""
    ring = node("circle", cx=x, cy=y, r=8, fill="none", stroke=shapes.INK, stroke_width=2)
    return [ring, shapes.text(x + 10, y - 8, told, size=_SIZE, bold=True, halo=True)]
