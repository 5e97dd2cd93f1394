"""The picture of a grid of images: each with its label, and with what a model takes it for."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
import numpy.typing as npt

from course_lib.i18n import _, join_sentences, ngettext, num_columns, padded
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import cell
from course_lib.pictures.figures import Figure, draw, headed
from course_lib.pictures.shapes import Node, node, number
from course_lib.specs.image_grid import WHITE, ImageGrid, Images

_SIDE, _FRAME, _THICK, _GAP, _WIDTH = 56.0, 1.0, 3.0, 10.0, 500.0
_SIZE, _CAPTION = 13.0, 20.0
_SHADES = 8  # more are hard to tell apart at this size, and would make the file longer
_RIGHT, _WRONG = "✓", "✗"


@draw.register
def _image_grid_figure(grid: ImageGrid) -> Figure:
    title, told = _title(grid), _told(grid)
    captions = [_caption(grid, at) for at in range(len(grid.images))]
    width = max([_SIDE + 2 * _THICK, *(text_width(caption, _SIZE) for caption in captions)])
    tiles = [_tile(grid, at, caption, width) for at, caption in enumerate(captions)]
    columns = max(1, int((_WIDTH + _GAP) // (width + _GAP)))
    rows = [arranging.beside(tiles[at : at + columns], _GAP) for at in range(0, len(tiles), columns)]
    text = [*told, "", *_rows(captions, columns), *_mistakes(grid)]
    return headed(title, [arranging.stacked(rows, _GAP)], text, width=_WIDTH, says=told or None)


def _title(grid: ImageGrid) -> str:
    images = ngettext("{count} image", "{count} images", len(grid.images))
    if grid.predictions is None:
        return _("{images} with their labels", images=images)
    return _("{images} with what a model takes them for", images=images)


def _told(grid: ImageGrid) -> list[str]:
    if grid.predictions is None:
        return []
    right, wrong = len(grid.images) - len(grid.wrong), len(grid.wrong)
    counts = [
        ngettext("{count} prediction is right.", "{count} predictions are right.", right),
        ngettext("{count} prediction is wrong.", "{count} predictions are wrong.", wrong),
    ]
    return [
        join_sentences(counts),
        _(
            "{wrong} marks a wrong prediction, in a thick frame; the label stands behind it in brackets.",
            wrong=_WRONG,
        ),
    ]


def _caption(grid: ImageGrid, at: int) -> str:
    label = grid.labels[at]
    if grid.predictions is None:
        return label
    prediction = grid.predictions[at]
    return f"{_WRONG} {prediction} ({label})" if at in grid.wrong else f"{_RIGHT} {prediction}"


def _rows(captions: list[str], columns: int) -> list[str]:
    """Returns the captions in rows and columns, as the picture has them."""
    wide = max(map(num_columns, captions))
    return [
        "  " + "  ".join(padded(caption, wide) for caption in captions[at : at + columns]).rstrip()
        for at in range(0, len(captions), columns)
    ]


def _mistakes(grid: ImageGrid) -> list[str]:
    """Returns a line in words for each wrong prediction: image numbers are counted from 1, row by row."""
    told = grid.predictions or ()
    lines = [
        _(
            "Image {place} shows {label}; the model takes it for {prediction}.",
            place=at + 1,
            label=grid.labels[at],
            prediction=told[at],
        )
        for at in grid.wrong
    ]
    return ["", *lines] if lines else []


def _tile(grid: ImageGrid, at: int, caption: str, width: float) -> Drawing:
    """Returns an image in its frame over its caption, in the middle of `width`."""
    wrong = at in grid.wrong
    colour, line = (shapes.ALARM, _THICK) if wrong else (shapes.LINE, _FRAME)
    left, top = (width - _SIDE) / 2, _THICK
    frame = cell(
        (left - line / 2, top - line / 2, _SIDE + line, _SIDE + line),
        fill=None,
        stroke=colour,
        stroke_width=line,
        class_="wrong" if wrong else None,
    )
    words = shapes.text(
        width / 2,
        _SIDE + 2 * _THICK + _SIZE,
        caption,
        size=_SIZE,
        anchor="middle",
        fill=colour if wrong else shapes.INK,
        bold=wrong,
    )
    return Drawing(width, _SIDE + 2 * _THICK + _CAPTION, (*frame, _image(grid.images[at], left, top), words))


def _image(image: Images, left: float, top: float) -> Node:
    """Returns an image as runs of equally dark pixels, a path for each shade: it needs no file of its own."""
    height, width = image.shape
    scale = _SIDE / max(height, width, 1)
    shades = -(-image.astype(np.int64) * _SHADES // WHITE)  # rounded up: whatever has ink is seen
    paths = [
        node("path", d=outline, fill_opacity=shade / _SHADES)
        for shade in range(1, _SHADES + 1)
        if (outline := "".join(_runs(shades == shade)))
    ]
    middle = [math.floor((_SIDE - length * scale) / 2) for length in (width, height)]
    place = f"translate({number(left + middle[0])} {number(top + middle[1])}) scale({number(scale)})"
    return node("g", *paths, transform=place, fill=shapes.INK, shape_rendering="crispEdges")


def _runs(inside: npt.NDArray[np.bool_]) -> list[str]:
    """Returns a path for each run of pixels in a row of the image."""
    paths = []
    for y, row in enumerate(inside.tolist()):
        x = 0
        for filled, run in groupby(row):
            length = len(list(run))
            paths += [f"M{x} {y}h{length}v1h-{length}z"] if filled else []
            x += length
    return paths
