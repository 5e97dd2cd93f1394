"""Bars: a few measurements in groups, with their figures, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import cell

_SIZE, _BAR_HEIGHT, _LINE, _GAP = 12.0, 14.0, 20.0, 12.0
_BAR_WIDTH, _BETWEEN = 120.0, 12.0  # narrow, so that a telephone need not shrink it much


@dataclass(frozen=True)
class Bar:
    """A measurement: what it is of, how long its bar is, and the value as text at the end of the bar."""

    label: str
    value: float
    figure: str


@dataclass(frozen=True)
class Bars:
    """Measurements under one heading; the colour of each is that of its place."""

    heading: str
    bars: tuple[Bar, ...]


def bars_drawing(groups: Sequence[Bars], full: float | None = None) -> Drawing:
    """Returns the groups under each other; `full` is the value whose bar is longest, if not the greatest."""
    bars = [bar for group in groups for bar in group.bars]
    longest = full or max((bar.value for bar in bars), default=0.0) or 1.0
    left = max((text_width(bar.label, _SIZE) for bar in bars), default=0.0) + _BETWEEN
    figures = max((text_width(bar.figure, _SIZE) for bar in bars), default=0.0) + _BETWEEN
    width = max([left + _BAR_WIDTH + figures, *(text_width(group.heading, _SIZE) for group in groups)])
    nodes, y = [], 0.0
    for group in groups:
        nodes.append(shapes.text(0, y + _SIZE, group.heading, size=_SIZE, bold=True))
        y += _LINE
        for colour, bar in zip(shapes.PALETTE, group.bars, strict=False):
            length = _BAR_WIDTH * bar.value / longest
            nodes += [
                shapes.text(0, y + _SIZE, bar.label, size=_SIZE),
                *cell((left, y + 1, length, _BAR_HEIGHT), fill=colour, stroke=shapes.INK),
                shapes.text(left + length + 6, y + _SIZE, bar.figure, size=_SIZE),
            ]
            y += _LINE
        y += _GAP
    return Drawing(width, max(y - _GAP, 0.0), tuple(nodes))


def bar_lines(groups: Sequence[Bars]) -> list[str]:
    """Returns the same in words, a line a group: what those hear who cannot see it."""
    return [
        f"{group.heading}: {', '.join(f'{bar.label} {bar.figure}' for bar in group.bars)}" for group in groups
    ]
