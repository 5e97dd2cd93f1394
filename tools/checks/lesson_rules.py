"""What every lesson and every appendix must have, checked on its source."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from course_lib.i18n import num_columns
from tools.lesson.cells import Cell
from tools.lesson.sources import Lesson

MAX_COLUMNS = 72  # of a line of code: the book's column holds as many at 1,100 px and more

_NBVAL_MARKER = re.compile(r"NBVAL|PYTEST_VALIDATE|nbval|raises-exception", re.I)


def lesson_faults(lesson: Lesson) -> Iterator[str]:
    """Yields every rule that a lesson or an appendix breaks, with the cell."""
    rules: list[Callable[[Lesson], Iterator[str]]] = [_names, _beginning, _nbval, _exercises]
    if not lesson.is_appendix:
        rules.append(_predictions)
    for rule in rules:
        yield from (f"{lesson.topic}: {fault}" for fault in rule(lesson))


def wide_lines(cells: Iterable[Cell]) -> Iterator[str]:
    """Yields the lines of code, comments among them, that are wider than the book's column.

    Args:
        cells: a lesson's, in one language. What the build writes into the setup is not the author's.
    """
    for cell in cells:
        if cell.kind == "code" and "setup" not in cell.tags:
            for line in cell.source.split("\n"):
                if num_columns(line) > MAX_COLUMNS:
                    here = f"cell {cell.cell_id!r}, {line.strip()[:40]!r}"
                    yield f"{here}: a line of {num_columns(line)} columns; {MAX_COLUMNS} are allowed"


def _names(lesson: Lesson) -> Iterator[str]:
    counts = Counter(cell.cell_id for cell in lesson.cells)
    for number, cell in enumerate(lesson.cells, 1):
        if not cell.cell_id:
            yield f"cell {number} needs a name, as in `# %% name`: {cell.source[:40]!r}"
        elif counts[cell.cell_id] > 1:
            yield f"cell {number} has the name {cell.cell_id!r}, and so has another"


def _beginning(lesson: Lesson) -> Iterator[str]:
    if not lesson.cells[0].source.startswith("# ") or not re.search(r"\d minutes", lesson.cells[0].source):
        yield "the first cell does not begin with a title and say how many minutes the lesson takes"
    if next(cell.tags for cell in lesson.cells if cell.kind == "code") != ("setup",):
        yield "the first code cell has a name or tags: it is the setup, which has none"


def _nbval(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.kind == "code" and _NBVAL_MARKER.search(" ".join([cell.source, *cell.tags])):
            yield f"cell {cell.cell_id!r} asks nbval to look away"


def _predictions(lesson: Lesson) -> Iterator[str]:
    """Yields the cards that are not followed by what reveals them, and the other way round."""
    yield from _unpaired(lesson, "predict", "reveal")
    for card, cell in _pairs(lesson, "predict"):
        asked, revealed = _question_of(card, "predict"), _question_of(cell, "reveal")
        if "reveal" in cell.tags and asked != revealed:
            yield f'cell {cell.cell_id!r} does not end in reveal("{asked}", measured)'


def _exercises(lesson: Lesson) -> Iterator[str]:
    yield from _unpaired(lesson, "exercise", "check")


def _pairs(lesson: Lesson, tag: str) -> Iterator[tuple[Cell, Cell]]:
    """Yields the cells that play a part, each with the one after it."""
    return ((cell, after) for cell, after in lesson.following() if tag in cell.tags and after is not None)


def _unpaired(lesson: Lesson, tag: str, partner: str) -> Iterator[str]:
    paired = {after.cell_id for _cell, after in _pairs(lesson, tag)}
    for cell, after in lesson.following():
        if tag in cell.tags and (after is None or partner not in after.tags):
            yield f"cell {cell.cell_id!r} (`{tag}`) is not followed by a cell `{partner}-…`"
        if partner in cell.tags and cell.cell_id not in paired:
            yield f"cell {cell.cell_id!r} (`{partner}`) does not follow a cell `{tag}-…`"


def _question_of(cell: Cell, function: str) -> str | None:
    """Returns the id in the call of a card's function in which a cell ends; None where it ends otherwise."""
    match ast.parse(cell.source).body[-1:]:
        case [ast.Expr(ast.Call(func=ast.Name(called), args=[ast.Constant(str() as question_id), *_]))]:
            return question_id if called == function else None
    return None
