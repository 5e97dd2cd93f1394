"""Figures: a picture with the text that says the same, and the one function that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing


@dataclass(frozen=True)
class Figure:
    """A picture and the text that says the same.

    Attributes:
        svg: the picture, a whole SVG image.
        text: the same in letters of fixed width: what a terminal shows, a screen reader reads and the
            tests compare.
    """

    svg: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.svg


@singledispatch
def draw(thing: Any) -> Figure:
    """Returns the picture of an object for whose kind a module beside this one registers a function.

    Raises:
        TypeError: a thing that has no picture.
    """
    raise TypeError(f"{type(thing).__name__} has no picture")


def headed(
    title: str,
    drawings: Sequence[Drawing],
    text: Sequence[str],
    *,
    width: float,
    says: Sequence[str] | None = None,
    verdict: str = "",
    agrees: bool = True,
) -> Figure:
    """Returns a figure under its title, as wide as its lines of text may become.

    Args:
        title: the name of the picture, and the first line of its text.
        drawings: what the panel shows, from the top down.
        text: the other lines.
        width: what no line of text exceeds.
        says: how to read the picture, below the title.
        verdict: what follows from it, at the end.
        agrees: whether the verdict is good news.
    """
    rows = [arranging.lines_of_text([title], size=14, max_width=width)]
    if says is not None:
        rows.append(arranging.lines_of_text(says, size=12, max_width=width, fill=shapes.SOFT_INK))
    rows += drawings
    if verdict:
        fill = shapes.INK if agrees else shapes.ALARM
        rows.append(arranging.lines_of_text([verdict], size=13, max_width=width, fill=fill))
    return framed(title, rows, text)


def framed(title: str, drawings: Sequence[Drawing], text: Sequence[str]) -> Figure:
    """Returns a figure: the drawings under each other on a panel, and its text with the title above."""
    drawing = arranging.document(arranging.stacked(drawings, 12), title)
    return Figure(shapes.markup(drawing), "\n".join([title, *text]))
