"""Links: bars that join what stands above and below them, and say what goes through."""

from __future__ import annotations

from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import cell

_PAD, _SIZE, _LEAST_WIDTH = 8.0, 12.0, 300.0


def link(told: str, width: float) -> Drawing:
    """Returns a bar as wide as the boxes that it joins, with what goes through it."""
    words = arranging.lines_of_text([told], size=_SIZE, max_width=max(width, _LEAST_WIDTH) - 2 * _PAD)
    wide, height = max(width, words.width + 2 * _PAD), words.height + 8
    bar = cell((0.5, 0.5, wide - 1, height - 1), fill=shapes.EMPTY, dashes="4 3")
    return Drawing(wide, height, (*bar, words.at(_PAD, 3)))
