"""Curves of several runs over each other as shapes: a colour and a pattern of dashes for each run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.curves import Curve, Quantity
from course_lib.pictures.shapes import Node, node, number

# Okabe and Ito's colours that read well as thin lines on a light ground; dashes tell the same without colour.
STYLES = (
    ("#0072B2", ""),
    ("#D55E00", "7 4"),
    ("#009E73", "2 3"),
    ("#CC79A7", "10 3 2 3"),
    ("#000000", "4 7"),
    ("#9A6A00", "1 5"),
)
_WIDTH, _HEIGHT, _LEFT, _BELOW, _ABOVE, _RIGHT = 350.0, 230.0, 40.0, 34.0, 8.0, 10.0  # two fit a notebook
_SIZE, _MOST_POINTS, _ABOUT_TICKS = 11.0, 160, 5


class _Scale(NamedTuple):
    """Where the last step and the largest value lie on the page."""

    last_step: int
    largest: float

    def x(self, step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / self.last_step

    def y(self, value: float) -> float:
        return _ABOVE + (_HEIGHT - _ABOVE - _BELOW) * (1 - value / self.largest)


def overlay_drawing(runs: Mapping[int, Sequence[Curve]], quantity: Quantity, last_step: int) -> Drawing:
    """Returns the curves of one quantity over the steps, later runs above earlier ones.

    Args:
        runs: for the place in `STYLES` of a run's colour and dashes its lines on train examples, and its
            values on held-out ones, which become dots. A run that lies exactly over another leaves it
            visible between its dashes.
        quantity: "loss" or "accuracy".
        last_step: the last step for which there is room.
    """
    drawn = [(style, curve) for style, run in runs.items() for curve in run if curve.quantity == quantity]
    values = [value for _style, curve in drawn for value in curve.values if math.isfinite(value)]
    largest = 1.0 if quantity == "accuracy" else 1.05 * max(values, default=1.0)
    scale = _Scale(max(last_step, 1), max(largest, 1e-9))
    lines = [_line(style, curve, scale) for style, curve in drawn if curve.split == "train" and curve.steps]
    dots = [dot for style, curve in drawn if curve.split == "test" for dot in _dots(style, curve, scale)]
    return Drawing(_WIDTH, _HEIGHT, (*_axes(scale), *lines, *dots))


def swatch(style: int) -> Drawing:
    """Returns a short piece of a run's line, for a legend."""
    colour, dashes = STYLES[style]
    line = node(
        "path", d="M0 7h40", fill="none", stroke=colour, stroke_width=2.5, stroke_dasharray=dashes or None
    )
    return Drawing(40, 14, (line,))


def _line(style: int, curve: Curve, scale: _Scale) -> Node:
    colour, dashes = STYLES[style]
    points = [
        f"{number(scale.x(curve.steps[at]))} {number(scale.y(curve.values[at]))}"
        for at in _thinned(len(curve.steps))
        if math.isfinite(curve.values[at])
    ]
    return node(
        "path",
        d=f"M{'L'.join(points)}" if points else None,
        fill="none",
        stroke=colour,
        stroke_width=2,
        stroke_linejoin="round",
        stroke_dasharray=dashes or None,
    )


def _dots(style: int, curve: Curve, scale: _Scale) -> list[Node]:
    """Returns rings, of another size for each run: those of equal values lie around each other."""
    places = ((scale.x(step), scale.y(value)) for step, value in zip(curve.steps, curve.values, strict=True))
    return [
        node("circle", cx=x, cy=y, r=3 + 1.4 * style, fill="none", stroke=STYLES[style][0], stroke_width=2)
        for x, y in places
    ]


def _axes(scale: _Scale) -> list[Node]:
    pieces: list[Node] = []
    for value in _ticks(scale.largest):
        y = scale.y(value)
        pieces.append(
            node("path", d=f"M{number(_LEFT)} {number(y)}H{number(_WIDTH - _RIGHT)}", stroke="#DDE1E6")
        )
        pieces.append(shapes.text(_LEFT - 5, y + 4, f"{value:g}", size=_SIZE, anchor="end"))
    bottom = scale.y(0)
    for step in _ticks(scale.last_step):
        pieces.append(shapes.text(scale.x(step), bottom + 14, f"{step:g}", size=_SIZE, anchor="middle"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return [*pieces, shapes.text(middle, bottom + 29, _("step"), size=_SIZE, anchor="middle")]


def _ticks(largest: float) -> list[float]:
    """Returns round numbers from 0 to `largest`.

    >>> _ticks(378), _ticks(1.0)
    ([0.0, 100.0, 200.0, 300.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    rough = largest / _ABOUT_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * (1 - 1e-9))
    return [round(at * step, 10) for at in range(int(largest / step * (1 + 1e-9)) + 1)]


def _thinned(count: int) -> list[int]:
    """Returns the places of at most so many points as the picture can show, the last one among them."""
    every = max(-(-count // _MOST_POINTS), 1)
    return sorted({*range(0, count, every), count - 1})
