"""The picture of who got which example: a row for each global batch, a column for each replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from course_lib.i18n import _, ngettext, num_columns, padded
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed

if TYPE_CHECKING:
    from lessons.strategies.received_examples import Part, ReceivedExamples

_WIDTH, _SIZE, _BOX_HEIGHT, _GAP, _PADDING = 500.0, 12.0, 22.0, 4.0, 8.0
_LEAST_BOX = 26.0
_MOST_BOXES, _MOST_IN_A_ROW, _LEAST_RUN = 8, 4, 3
_NOTHING = "–"


def received_figure(received: ReceivedExamples) -> Figure:
    """Returns the picture of who got which example."""
    title, told = _title(received), _told(received)
    drawings = [_table(received), arranging.lines_of_text(told, size=12, max_width=_WIDTH)]
    return headed(title, drawings, ["", *_lines(received), "", *told], width=_WIDTH)


def _title(received: ReceivedExamples) -> str:
    batches = ngettext("{count} batch", "{count} batches", len(received.batches))
    replicas = ngettext("{count} replica", "{count} replicas", received.num_replicas)
    return _("Who got which example: {batches} on {replicas}", batches=batches, replicas=replicas)


def _told(received: ReceivedExamples) -> list[str]:
    """Returns the sizes of the parts where they differ, who got nothing, and what came more than once."""
    lines = [
        _(
            "Batch {batch} is split unevenly: {sizes}.",
            batch=batch,
            sizes=_(", ").join(map(str, received.sizes[batch])),
        )
        for batch in received.uneven
    ]
    lines += [
        _("Replica {replica} got nothing of batch {batch}.", replica=replica, batch=batch)
        for batch, replica in received.empty
    ]
    if received.repeated:
        lines.append(_("Received more than once: {examples}.", examples=_runs(received.repeated)))
    return lines or [_("All replicas got equally many examples of each batch, and none came twice.")]


def _lines(received: ReceivedExamples) -> list[str]:
    rows = [["", *(_replica(at) for at in range(received.num_replicas))]]
    rows += [[_batch(at), *map(_runs, batch)] for at, batch in enumerate(received.batches)]
    widths = [max(map(num_columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _replica(number: int) -> str:
    return _("replica {number}", number=number)


def _batch(number: int) -> str:
    return _("batch {number}", number=number)


def _runs(part: Sequence[int]) -> str:
    """Returns indices as text, three or more that follow each other as the first and the last.

    >>> _runs((0, 1, 5, 6, 7, 8)), _runs(())
    ('0 1 5–8', '–')
    """
    texts: list[str] = []
    for _start, run in groupby(enumerate(part), lambda pair: pair[1] - pair[0]):
        found = [index for _place, index in run]
        texts += [f"{found[0]}–{found[-1]}"] if len(found) >= _LEAST_RUN else map(str, found)
    return " ".join(texts) or _NOTHING


def _table(received: ReceivedExamples) -> Drawing:
    """Returns the headings of the replicas over a row for each batch."""
    labels = [[_labels(received, part) for part in batch] for batch in received.batches]
    box_width = max(text_width(label, _SIZE) for row in labels for cell in row for label in cell) + _PADDING
    box_width = max(box_width, _LEAST_BOX)
    repeated = set(map(str, received.repeated))
    cells = [[_boxes(cell, box_width, batch, repeated) for cell in row] for batch, row in enumerate(labels)]
    headings = [_words(_replica(at), bold=True) for at in range(received.num_replicas)]
    left = [_words("", bold=False), *(_words(_batch(at), bold=False) for at in range(len(cells)))]
    widths = [max(cell.width for cell in column) for column in zip(headings, *cells, strict=True)]
    rows = [
        _row([name, *row], [max(each.width for each in left), *widths])
        for name, row in zip(left, [headings, *cells], strict=True)
    ]
    return arranging.stacked(rows, 2 * _GAP)


def _row(cells: Sequence[Drawing], widths: Sequence[float]) -> Drawing:
    filled = [replace(cell, width=width) for cell, width in zip(cells, widths, strict=True)]
    return arranging.beside(filled, 2 * _PADDING)


def _labels(received: ReceivedExamples, part: Part) -> list[str]:
    """Returns what stands in the boxes of a part: each index, or all in short where parts are large."""
    few = max(map(max, received.sizes)) <= _MOST_BOXES
    return [str(index) for index in part] if few and part else [_runs(part)]


def _boxes(labels: Sequence[str], width: float, batch: int, repeated: set[str]) -> Drawing:
    boxes = [_box(label, width, batch, label in repeated) for label in labels]
    rows = [boxes[at : at + _MOST_IN_A_ROW] for at in range(0, len(boxes), _MOST_IN_A_ROW)]
    return arranging.stacked([arranging.beside(row, _GAP) for row in rows], _GAP)


def _box(label: str, width: float, batch: int, repeated: bool) -> Drawing:
    """Returns a box: dashed where a part is empty, with a thick frame for what came more than once."""
    empty = label == _NOTHING
    nodes = cell(
        (0.5, 0.5, width - 1, _BOX_HEIGHT - 1),
        Line(label, size=_SIZE),
        fill=None if empty else batch,
        stroke=shapes.ALARM if repeated else shapes.LINE,
        stroke_width=3 if repeated else 1,
        radius=3,
        dashes="3 3" if empty else None,
        class_="empty" if empty else "example",
    )
    return Drawing(width, _BOX_HEIGHT, nodes)


def _words(content: str, *, bold: bool) -> Drawing:
    down = _BOX_HEIGHT / 2 + _SIZE / 3
    nodes = (shapes.text(0, down, content, size=_SIZE, fill=shapes.SOFT_INK, bold=bold),) if content else ()
    return Drawing(text_width(content, _SIZE), _BOX_HEIGHT, nodes)
