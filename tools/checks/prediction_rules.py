"""What every prediction must have: a card, a cell that reveals, and nothing that tells the answer before."""

from __future__ import annotations

from collections.abc import Iterator

from tools.checks.parts import calls, last_call, parsed, tagged, unpaired
from tools.lesson.cells import Cell
from tools.lesson.sources import Lesson


def predictions(lesson: Lesson) -> Iterator[str]:
    """Yields what is wrong with the predictions of a lesson, one by one."""
    yield from unpaired(lesson, "predict", "reveal")
    for cell, after in lesson.following():
        if "predict" in cell.tags and after is not None and "reveal" in after.tags:
            yield from _reveal_faults(lesson, cell, after)


def scores(lesson: Lesson) -> Iterator[str]:
    """Yields a fault where a lesson with predictions does not end in the reader's score."""
    *_others, last = [cell for cell in lesson.cells if cell.kind == "code"] or [Cell("code", "", "")]
    if tagged(lesson, "predict") and last_call(last, "score") != (lesson.number, []):
        yield f'the last code cell, {last.cell_id!r}, is not score("{lesson.number}")'


def _reveal_faults(lesson: Lesson, card: Cell, cell: Cell) -> Iterator[str]:
    asked, call = last_call(card, "predict"), last_call(cell, "reveal")
    if call is None or len(call[1]) != 1:
        yield f'cell {cell.cell_id!r} does not end in reveal("{lesson.number}-...", measured)'
    elif asked is not None and asked[0] != call[0]:
        yield f"cell {cell.cell_id!r} reveals {call[0]!r}, and the card before it asks for {asked[0]!r}"
    if calls(parsed(cell), "print", "display"):
        yield f"cell {cell.cell_id!r} prints or displays: where it is folded, that would stand there to read"
