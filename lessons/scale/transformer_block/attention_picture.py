"""The picture of attention: one head compares a token with all tokens of its text, and mixes their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node

_LEFT, _COLUMN, _ROW, _GAP, _SIZE = 172.0, 92.0, 26.0, 8.0, 12.0
_WIDTH = _LEFT + 4 * _COLUMN
_CHOSEN = 2  # the token whose row is followed
QUERIES = np.array([[1, 0, 0, 1], [0, 2, 1, 0], [2, 0, 2, 0], [1, 0, 1, 1]])
KEYS = np.array([[0, 1, 0, 0], [2, 0, 1, 1], [0, 0, 1, 2], [1, 1, 1, 0]])
VALUES = 10 * np.eye(4)


def attention_picture() -> Figure:
    """Returns queries, keys, the table of their products, and for one token the weights and what it gets."""
    tokens = [_("the"), _("cat"), _("drank"), _("milk")]
    token, products = tokens[_CHOSEN], QUERIES @ KEYS.T
    exponentials = np.exp(products[_CHOSEN] / 2)  # the root of four numbers
    weights = exponentials / exponentials.sum()
    queries = [_("query of {token}", token=each) for each in tokens]
    below = {
        _("weights for {token}", token=token): [f"{100 * weight:.0f} %" for weight in weights],
        _("values"): _vectors(VALUES),
    }
    result = _("{token} receives {received}", token=token, received=_vectors([weights @ VALUES])[0])
    says = [
        _("Each number in the table is the dot product of a query, its row, and a key, its column."),
        _("The weights for {token} follow from its row of the table.", token=token),
    ]
    told = [
        _("key of {token}: {numbers}", token=pair[0], numbers=pair[1])
        for pair in zip(tokens, _vectors(KEYS), strict=True)
    ]
    for query, numbers, row in zip(queries, _vectors(QUERIES), products, strict=True):
        told.append(f"{query}: {numbers}; {' | '.join(map(str, row))}")
    told += [f"{label}: {' | '.join(contents)}" for label, contents in below.items()]
    drawing = _drawn(tokens, queries, products, below, result)
    return headed(_("One head of attention"), [drawing], [*says, *told, result], width=_WIDTH, says=says)


def _vectors(rows: Any) -> list[str]:
    return [" ".join(f"{number:.1f}".removesuffix(".0") for number in row) for row in rows]


def _drawn(
    tokens: list[str], queries: list[str], products: Any, below: dict[str, list[str]], result: str
) -> Drawing:
    nodes = [shapes.text(0, 17, _("keys"), size=_SIZE)]
    for column, token in enumerate(tokens):
        middle = _LEFT + column * _COLUMN + (_COLUMN + 10) / 2
        nodes.append(shapes.text(middle, 17, token, size=_SIZE, anchor="middle", bold=True))
    nodes += _row(_ROW, _vectors(KEYS))
    top = 2 * _ROW + _GAP
    for at, (query, numbers) in enumerate(zip(queries, _vectors(QUERIES), strict=True)):
        is_chosen = at == _CHOSEN
        nodes.append(shapes.text(0, top + 17, query, size=_SIZE, bold=is_chosen))
        nodes.append(shapes.text(_LEFT - 52, top + 17, numbers, size=_SIZE, bold=is_chosen, monospace=True))
        nodes += _row(top, list(map(str, products[at])), shapes.PALETTE[-1] if is_chosen else shapes.PANEL)
        top += _ROW
    for label, contents in below.items():
        top += _GAP
        nodes += [shapes.text(0, top + 17, label, size=_SIZE), *_row(top, contents)]
        top += _ROW
    nodes.append(shapes.text(_LEFT + 10, top + _GAP + 15, result, size=_SIZE, bold=True))
    width = max(_WIDTH, _LEFT + 10 + arranging.text_width(result, _SIZE))
    return Drawing(width, top + _GAP + 20, tuple(nodes))


def _row(top: float, contents: list[str], fill: str | None = None) -> list[Node]:
    """Returns a cell for each token; without a fill, each has the colour of its token."""
    nodes: list[Node] = []
    for column, content in enumerate(contents):
        place = (_LEFT + column * _COLUMN + 10, top, _COLUMN - 10, _ROW)
        nodes += cell(place, Line(content, size=_SIZE), fill=fill or column)
    return nodes
