"""The picture of a text's way to probabilities: its words, its tokens, its row, the layers behind."""

from __future__ import annotations

from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, draw, headed
from course_lib.pictures.shapes import Node
from course_lib.specs.text_path import UNKNOWN, TextPath

_WIDTH, _SIZE, _PAD = 520.0, 12.0, 6.0
_CHIP_HEIGHT, _GAP = 34.0, 5.0
_STRIP_HEIGHT, _TICK = 30.0, 2.5


@draw.register
def _text_path_figure(path: TextPath) -> Figure:
    title = _("From a text to probabilities")
    tokens = ngettext("{count} token", "{count} tokens", len(path.tokens))
    told = [_counted(path), " → ".join(_layers(path))]
    drawings = [
        arranging.lines_of_text([f"“{path.text}”"], size=13, max_width=_WIDTH),
        arranging.titled(tokens, _chips(path)),
        arranging.titled(told[0], _strip(path)),
        arranging.lines_of_text([told[1]], size=13, max_width=_WIDTH),
    ]
    lines = [f"  {token}: {_place(path, at)}" for at, token in enumerate(path.tokens)]
    return headed(title, drawings, [f"“{path.text}”", tokens, *lines, *told], width=_WIDTH)


def _counted(path: TextPath) -> str:
    return ngettext(
        "A row of {columns} numbers, {count} of them not 0",
        "A row of {columns} numbers, {count} of them not 0",
        len(path.counted),
        columns=f"{len(path.row):,}",
    )


def _layers(path: TextPath) -> list[str]:
    *hidden, classes = path.sizes
    units = [ngettext("{count} hidden unit", "{count} hidden units", size) for size in hidden]
    logits = ngettext("{count} logit", "{count} logits", classes)
    return [*units, logits, ngettext("{count} probability", "{count} probabilities", classes)]


def _place(path: TextPath, at: int) -> str:
    column = path.columns[at]
    known = "" if column != UNKNOWN else _(", unknown")
    return _("column {column}{known}", column=column, known=known)


def _chips(path: TextPath) -> Drawing:
    chips = [_chip(token, _place(path, at), path.columns[at]) for at, token in enumerate(path.tokens)]
    return arranging.flowing(chips, _GAP, _WIDTH) if chips else Drawing(0, 0, ())


def _chip(token: str, place: str, column: int) -> Drawing:
    """Returns a token over its column, in the colour of the column; unknown ones have a dashed edge."""
    width = max(text_width(token, _SIZE), text_width(place, 9)) + 2 * _PAD
    known = column != UNKNOWN
    lines = Line(token, -2, _SIZE, bold=known), Line(place, 11, 9)
    fill, dashes = (0, None) if known else (shapes.EMPTY, "4 3")
    nodes = cell((0, 0, width, _CHIP_HEIGHT), *lines, fill=fill, radius=5, dashes=dashes)
    return Drawing(width, _CHIP_HEIGHT, nodes)


def _strip(path: TextPath) -> Drawing:
    """Returns the row from left to right: for each number that is not 0 a stroke as high as it is large."""
    strokes = [_stroke(path, column, value) for column, value in path.counted.items()]
    frame = cell((0, 0, _WIDTH, _STRIP_HEIGHT), fill=shapes.EMPTY)
    return Drawing(_WIDTH, _STRIP_HEIGHT, (*frame, *strokes))


def _stroke(path: TextPath, column: int, value: float) -> Node:
    height = (_STRIP_HEIGHT - 2) * value / max(path.row)
    x = (_WIDTH - _TICK) * column / len(path.row)
    y = _STRIP_HEIGHT - 1 - height
    return shapes.rectangle(x, y, _TICK, height, fill=shapes.INK, stroke_width=0)
