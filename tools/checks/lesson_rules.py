"""What every lesson must have, checked on its source."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator

from course_lib.exercises import checks
from tools.checks.prose_rules import imports, lines_of_prose
from tools.lesson import exercises
from tools.lesson.cells import MAX_NAME_LENGTH, Cell
from tools.lesson.markdown_blocks import parser
from tools.lesson.sources import Lesson, LessonError

MAX_CODE_LINES = 15
MIN_PREDICTIONS, MIN_ERRORS, MIN_EXERCISES, MAX_TAKEAWAYS = 3, 1, 3, 3
TAGS = {"opening", "setup", "predict", "reveal", "error", "exercise", "check", "takeaways"}

_SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NBVAL_MARKER = re.compile(r"NBVAL|PYTEST_VALIDATE|nbval|raises-exception", re.I)

Rule = Callable[[Lesson], Iterator[str]]


def lesson_faults(lesson: Lesson) -> Iterator[str]:
    """Yields every rule that a lesson breaks, with the cell."""
    for rule in RULES:
        yield from (f"{lesson.name}: {fault}" for fault in rule(lesson))


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
        lines = [line for line in cell.source.split("\n") if line.strip()]
        if cell.kind != "code":
            continue
        if not lines:
            yield f"cell {cell.cell_id!r} is empty"
        if len(lines) > MAX_CODE_LINES:
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
            if re.search(r"(  |\\)$", cell.source, re.M):
                yield f"cell {cell.cell_id!r} has a hard line break, which translations lose"


def _predictions(lesson: Lesson) -> Iterator[str]:
    yield from _pairs(lesson, "predict", "markdown", "reveal")
    yield from _at_least(lesson, "predict", MIN_PREDICTIONS)


def _errors(lesson: Lesson) -> Iterator[str]:
    yield from _at_least(lesson, "error", MIN_ERRORS)
    for cell in _tagged(lesson, "error"):
        tree = _parsed(cell) or ast.Module([], [])
        handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
        caught = [node for handler in handlers for node in ast.walk(handler)]
        shows = [node for node in caught if _is_call(node, "print", "display")]
        if not shows:
            yield f"cell {cell.cell_id!r} catches and prints no error"


def _exercises(lesson: Lesson) -> Iterator[str]:
    yield from _pairs(lesson, "exercise", "code", "check")
    yield from _at_least(lesson, "exercise", MIN_EXERCISES)
    for cell, check in lesson.following():
        if "exercise" in cell.tags and check is not None:
            yield from (f"cell {cell.cell_id!r}: {fault}" for fault in _exercise_faults(lesson, cell, check))


def _exercise_faults(lesson: Lesson, cell: Cell, check: Cell) -> Iterator[str]:
    call = _check_call(check)
    try:
        names = exercises.answers(cell.source)
    except (LessonError, SyntaxError) as error:
        yield str(error)
        return
    if call is None:
        yield f'cell {check.cell_id!r} does not end in check("{lesson.number}-...", name)'
        return
    exercise_id, checked = call
    for name in sorted(checked - names) if checked else ["no name"]:
        yield f"the check looks at {name!r}, which the exercise does not leave open"
    if not exercise_id.startswith(f"{lesson.number}-"):
        yield f"the exercise id {exercise_id!r} does not begin with {lesson.number}-"
    if checks.find(exercise_id) is None:
        yield f"no check is registered for {exercise_id!r}"


def _check_call(cell: Cell) -> tuple[str, set[str]] | None:
    """Returns the id of the exercise and the names whose values are checked."""
    tree = _parsed(cell)
    last = tree.body[-1] if tree and tree.body else None
    match last:
        case ast.Expr(ast.Call(func=ast.Name("check"), args=[ast.Constant(str() as exercise_id), answer])):
            return exercise_id, {node.id for node in ast.walk(answer) if isinstance(node, ast.Name)}
    return None


def _takeaways(lesson: Lesson) -> Iterator[str]:
    cells = _tagged(lesson, "takeaways")
    if len(cells) != 1 or cells[0].kind != "markdown":
        yield "one markdown cell, and no other, is tagged `takeaways`"
        return
    items = sum(token.type == "list_item_open" for token in parser().parse(cells[0].source))
    if not 1 <= items <= MAX_TAKEAWAYS:
        yield f"there are {items} takeaways; 1 to {MAX_TAKEAWAYS} are allowed"


def _pairs(lesson: Lesson, tag: str, kind: str, partner: str) -> Iterator[str]:
    before: Cell | None = None
    for cell, after in lesson.following():
        if tag in cell.tags:
            if cell.kind != kind:
                yield f"cell {cell.cell_id!r} is tagged `{tag}` and is no {kind} cell"
            if after is None or after.kind != "code" or partner not in after.tags:
                yield f"cell {cell.cell_id!r} (`{tag}`) is not followed by a code cell tagged `{partner}`"
        if partner in cell.tags and (before is None or tag not in before.tags):
            yield f"cell {cell.cell_id!r} (`{partner}`) does not follow a cell tagged `{tag}`"
        before = cell


def _at_least(lesson: Lesson, tag: str, least: int) -> Iterator[str]:
    found = len(_tagged(lesson, tag))
    if found < least:
        yield f"{found} cells are tagged `{tag}`; a lesson has at least {least}"


def _tagged(lesson: Lesson, tag: str) -> list[Cell]:
    return [cell for cell in lesson.cells if tag in cell.tags]


def _parsed(cell: Cell) -> ast.Module | None:
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return None


def _is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


RULES: tuple[Rule, ...] = (
    _names,
    _tags,
    _opening,
    _setup,
    _code,
    _nbval,
    _markdown,
    _predictions,
    _errors,
    _exercises,
    _takeaways,
    lines_of_prose,
    imports,
)
