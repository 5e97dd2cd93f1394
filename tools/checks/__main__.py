"""Holds lessons and notebooks against the rules, and the notebooks against their sources.

python -m tools.checks
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode

from tools.checks.lesson_rules import lesson_faults, wide_lines
from tools.checks.output_rules import output_faults, tells_beforehand
from tools.checks.varying_rules import stated
from tools.lesson.build import built_cells, built_notebook
from tools.lesson.execute import is_executed
from tools.lesson.maps import maps
from tools.lesson.sources import Course, Lesson, LessonError
from tools.lesson.stored_outputs import normalised

_SHOWING = {"predict", "reveal", "error", "check"}


def check(course: Course) -> Iterator[str]:
    """Yields every fault of every lesson and notebook."""
    for lesson in course.lessons():
        yield from lesson_faults(lesson)
        for language in course.languages:
            name = f"{language}/{lesson.place.notebook}"
            try:
                yield from (f"{name}: {fault}" for fault in _notebook_faults(course, lesson, language))
            except LessonError as error:
                yield str(error)
    for path, wanted in maps(course):
        if path.read_text("utf-8") != wanted:
            yield f"{path.name}: its map of the lessons is not what they say (build again)"
    for language in course.languages:
        yield from (f"{language}/{path.name} has no source" for path in course.strangers(language))


def _notebook_faults(course: Course, lesson: Lesson, language: str) -> Iterator[str]:
    wanted = built_notebook(course, lesson, language)
    yield from wide_lines(built_cells(course, lesson, language, solved=True))
    path = course.notebook(language, lesson.topic)
    if not path.exists():
        yield "it is not built"
        return
    stored = nbformat.read(path, 4)
    yield from stale(stored, wanted)
    if is_executed(stored):
        yield from _stored_faults(stored, is_appendix=lesson.is_appendix)
    else:
        yield "it is not executed from its first to its last cell"


def stale(stored: NotebookNode, wanted: NotebookNode) -> Iterator[str]:
    """Yields where a notebook is not what its source and catalogue give: old, or edited by hand."""
    if [cell.id for cell in stored.cells] != [cell.id for cell in wanted.cells]:
        yield "its cells are not those of the source (build again)"
        return
    for ours, theirs in zip(stored.cells, wanted.cells, strict=True):
        for what in ("cell_type", "source", "metadata"):
            if ours[what] != theirs[what]:
                yield f"cell {ours.id!r}: its {what} is not that of the source (build again)"
    for key, value in wanted.metadata.items():
        if stored.metadata.get(key) != value:
            yield f"its metadata {key!r} is not what the build writes"


def _stored_faults(stored: NotebookNode, *, is_appendix: bool) -> Iterator[str]:
    if normalised(stored) != stored:
        yield "its outputs are not as tools.lesson.execute stores them"
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    of_lesson = stated(cell.source for cell in code)
    for cell in code:
        tags = set(cell.metadata.get("tags", []))
        bands = stated([cell.source]) or of_lesson  # what a function above it prints
        yield from (f"cell {cell.id!r} {fault}" for fault in output_faults(cell, bands))
        if _SHOWING & tags and not cell.outputs:
            yield f"cell {cell.id!r} shows nothing"
        elif "reveal" in tags and not is_appendix and tells_beforehand(cell):
            yield f"cell {cell.id!r} shows more than `reveal`: folded, that would stand there to read"


def main() -> int:
    """Runs the command line and returns its exit status."""
    try:
        faults = list(check(Course.here()))
    except LessonError as error:
        faults = [str(error)]
    print("\n".join(faults) or "The notebooks are what their sources say.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
