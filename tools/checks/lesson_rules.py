"""What every lesson, and every appendix, must have, checked on its source."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from course_lib.i18n import num_columns
from tools.checks.parts import bound_names, calls, last_call, parsed, tagged, unpaired
from tools.checks.prose_rules import lines_of_prose
from tools.checks.varying_rules import bands
from tools.lesson import exercises
from tools.lesson.cells import MAX_NAME_LENGTH, Cell
from tools.lesson.markdown_blocks import parser
from tools.lesson.sources import Lesson

MAX_CODE_LINES, MAX_TAKEAWAYS = 15, 3
MAX_COLUMNS = 72  # of a line of code: the book's column holds as many at 1,100 px and more
PROGRAM = "%%writefile "  # how a cell begins that writes a program, of any length, into a file
TAGS = {
    "opening",
    "setup",
    "predict",
    "reveal",
    "error",
    "modelled",
    "versions",
    "exercise",
    "check",
    "takeaways",
}

_SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_DISPLAYED_MATH = re.compile(r"\$\$.*?\$\$", re.DOTALL)  # its \\ is a new row, not a line break
_NBVAL_MARKER = re.compile(r"NBVAL|PYTEST_VALIDATE|nbval|raises-exception", re.I)

Rule = Callable[[Lesson], Iterator[str]]


def lesson_faults(lesson: Lesson) -> Iterator[str]:
    """Yields every rule that a lesson or an appendix breaks, with the cell."""
    for rule in RULES_OF_APPENDICES if lesson.is_appendix else RULES:
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
        elif not _SLUG.fullmatch(cell.cell_id) or len(cell.cell_id) > MAX_NAME_LENGTH:
            yield f"the name {cell.cell_id!r} is not a slug of at most {MAX_NAME_LENGTH} characters"
    yield from (f"the name {name!r} is used twice" for name, uses in counts.items() if name and uses > 1)


def _tags(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        for tag in sorted(set(cell.tags) - TAGS):
            yield f"cell {cell.cell_id!r} has the unknown tag {tag!r}"


def _opening(lesson: Lesson) -> Iterator[str]:
    first = lesson.cells[0]
    if first.kind != "markdown" or "opening" not in first.tags or not first.source.startswith("# "):
        yield "the first cell is no markdown cell tagged `opening` that starts with a title"
    if not re.search(r"\b\d+ minutes\b", first.source):
        yield "the opening does not say how many minutes the lesson takes"
    if not re.search(r"\bneed to know\b", first.source):
        yield "the opening does not say what one needs to know"


def _setup(lesson: Lesson) -> Iterator[str]:
    tagged = [cell for cell in lesson.cells if "setup" in cell.tags]
    first_code = next((cell for cell in lesson.cells if cell.kind == "code"), None)
    if len(tagged) != 1 or first_code is not tagged[0]:
        yield "the first code cell, and no other, is tagged `setup`"


def _code(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.kind != "code":
            continue
        lines = [line for line in cell.source.split("\n") if line.strip()]
        if cell.source.startswith(PROGRAM):
            lines = lines[1:]
        elif len(lines) > MAX_CODE_LINES:
            yield f"cell {cell.cell_id!r} has {len(lines)} lines of code; {MAX_CODE_LINES} are allowed"
        if any(re.match(r"\s*[%!]", line) for line in lines):
            yield f"cell {cell.cell_id!r} holds a magic or a shell command"


def _nbval(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.kind == "code" and _NBVAL_MARKER.search(" ".join([cell.source, *cell.tags])):
            yield f"cell {cell.cell_id!r} asks nbval to look away"


def _markdown(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.kind == "markdown":
            if re.search(r"^\s*(:::|```\{)", cell.source, re.M):
                yield f"cell {cell.cell_id!r} has a directive, which JupyterLab and Colab do not show"
            if re.search(r"(  |\\)$", _DISPLAYED_MATH.sub("", cell.source), re.M):
                yield f"cell {cell.cell_id!r} has a hard line break, which translations lose"


def _predictions(lesson: Lesson) -> Iterator[str]:
    """Yields what is wrong with the predictions of a lesson, one by one."""
    yield from unpaired(lesson, "predict", "reveal")
    for cell, after in lesson.following():
        if "predict" in cell.tags and after is not None and "reveal" in after.tags:
            yield from _reveal_faults(lesson, cell, after)


def _scores(lesson: Lesson) -> Iterator[str]:
    """Yields a fault where a lesson with predictions does not end in the reader's score."""
    *_others, last = [cell for cell in lesson.cells if cell.kind == "code"] or [Cell("code", "", "")]
    if tagged(lesson, "predict") and last_call(last, "score") != (lesson.topic, []):
        yield f'the last code cell, {last.cell_id!r}, is not score("{lesson.topic}")'


def _reveal_faults(lesson: Lesson, card: Cell, cell: Cell) -> Iterator[str]:
    asked, call = last_call(card, "predict"), last_call(cell, "reveal")
    if call is None or len(call[1]) != 1:
        yield f'cell {cell.cell_id!r} does not end in reveal("{lesson.topic}-...", measured)'
    elif asked is not None and asked[0] != call[0]:
        yield f"cell {cell.cell_id!r} reveals {call[0]!r}, and the card before it asks for {asked[0]!r}"
    if calls(parsed(cell), "print", "display"):
        yield f"cell {cell.cell_id!r} prints or displays: where it is folded, that would stand there to read"


def _skipped(lesson: Lesson) -> Iterator[str]:
    """Yields names that a cell needs and only a measurement makes, which a reader may skip."""
    made: set[str] = set()
    revealed: dict[str, str] = {}
    for cell in lesson.cells:
        if cell.kind != "code":
            continue
        tree = parsed(cell)
        bound = bound_names(tree)
        needed = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound
        for name in sorted(needed & revealed.keys()):
            yield f"cell {cell.cell_id!r} needs {name!r}, which only {revealed[name]!r} makes"
        if "reveal" in cell.tags:
            revealed |= dict.fromkeys(bound - made, cell.cell_id)
        else:
            made |= bound
            revealed = {name: made_by for name, made_by in revealed.items() if name not in bound}


def _errors(lesson: Lesson) -> Iterator[str]:
    for cell in tagged(lesson, "error"):
        handlers = [node for node in ast.walk(parsed(cell)) if isinstance(node, ast.ExceptHandler)]
        if not any(calls(handler, "print", "display") for handler in handlers):
            yield f"cell {cell.cell_id!r} catches and prints no error"


def _exercises(lesson: Lesson) -> Iterator[str]:
    yield from unpaired(lesson, "exercise", "check")
    for cell, check in lesson.following():
        if "exercise" in cell.tags and check is not None:
            yield from _exercise_faults(lesson, cell, check)


def _exercise_faults(lesson: Lesson, cell: Cell, check: Cell) -> Iterator[str]:
    call = last_call(check, "check")
    if call is None or len(call[1]) != 1:
        yield f'cell {check.cell_id!r} does not end in check("{lesson.topic}-...", name)'
        return
    _exercise_id, [answer] = call
    checked = {node.id for node in ast.walk(answer) if isinstance(node, ast.Name)}
    for name in sorted(checked - exercises.answers(cell.source)) if checked else ["no name"]:
        yield f"cell {check.cell_id!r} looks at {name!r}, which the exercise does not leave open"


def _takeaways(lesson: Lesson) -> Iterator[str]:
    cells = tagged(lesson, "takeaways")
    if len(cells) != 1 or cells[0].kind != "markdown":
        yield "one markdown cell, and no other, is tagged `takeaways`"
        return
    items = sum(token.type == "list_item_open" for token in parser().parse(cells[0].source))
    if not 1 <= items <= MAX_TAKEAWAYS:
        yield f"there are {items} takeaways; 1 to {MAX_TAKEAWAYS} are allowed"


RULES_OF_APPENDICES: tuple[Rule, ...] = (
    _names,
    _tags,
    _opening,
    _setup,
    _code,
    _nbval,
    _markdown,
    _takeaways,
    lines_of_prose,
)
RULES: tuple[Rule, ...] = (*RULES_OF_APPENDICES, _predictions, _scores, _skipped, _errors, _exercises, bands)
