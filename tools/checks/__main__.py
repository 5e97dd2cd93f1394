"""Holds lessons and notebooks against the rules, and the notebooks against their sources.

python -m tools.checks
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode

from tools.checks.lesson_rules import lesson_faults, wide_lines
from tools.checks.output_rules import folded_outputs, output_faults
from tools.checks.varying_rules import stated
from tools.lesson import comments
from tools.lesson.build import built_cells, built_notebook
from tools.lesson.execute import is_executed
from tools.lesson.maps import maps
from tools.lesson.sources import SOURCE_LANGUAGE, Course, Lesson, LessonError
from tools.lesson.stored_outputs import normalised

_SHOWING = {"predict", "reveal", "error", "check"}


def check(course: Course) -> Iterator[str]:
    """Yields every fault of every lesson and notebook."""
    for lesson in course.lessons():
        try:
            for language in course.languages:
                yield from _notebook_faults(course, lesson, language)
            yield from lesson_faults(lesson)
            yield from _width_faults(course, lesson)
        except LessonError as error:
            yield str(error)
    for path, wanted in maps(course):
        if path.read_text("utf-8") != wanted:
            yield f"{path.name}: its map of the lessons is not what they say (build again)"
    for topic in sorted(set(course.wide_code) - {place.topic for place in course.places}):
        yield f"`wide_code` in lessons/order.toml names {topic!r}, which is no lesson"
    for language in course.languages:
        yield from (f"{language}/{path.name} has no source" for path in course.strangers(language))


def _width_faults(course: Course, lesson: Lesson) -> Iterator[str]:
    """Yields the lines of code that are too wide, or that none is in a lesson which is listed for them."""
    wide = [
        f"{language}/{lesson.place.notebook}: {fault}"
        for language in course.languages
        for fault in wide_lines(built_cells(course, lesson, language, solved=True))
    ]
    if lesson.topic not in course.wide_code:
        yield from wide
    elif not wide:
        yield f"{lesson.topic}: all its lines of code fit: take it off `wide_code` in lessons/order.toml"


def _notebook_faults(course: Course, lesson: Lesson, language: str) -> Iterator[str]:
    name = f"{language}/{lesson.place.notebook}"
    wanted = built_notebook(course, lesson, language)
    path = course.notebook(language, lesson.topic)
    if not path.exists():
        yield f"{name} is not built"
        return
    stored = nbformat.read(path, 4)
    yield from (f"{name}: {fault}" for fault in stale(stored, wanted))
    yield from (f"{name}: {fault}" for fault in _stored_faults(stored))
    if language != SOURCE_LANGUAGE:
        source = built_notebook(course, lesson, SOURCE_LANGUAGE)
        yield from (f"{name}: {fault}" for fault in different_code(stored, source))


def stale(stored: NotebookNode, wanted: NotebookNode) -> Iterator[str]:
    """Yields where a notebook is not what its source and catalogue give: old, or edited by hand."""
    if [cell.id for cell in stored.cells] != [cell.id for cell in wanted.cells]:
        yield "its cells are not those of the source (build again)"
        return
    for ours, theirs in zip(stored.cells, wanted.cells, strict=True):
        for what in ("cell_type", "source", "metadata"):
            if ours[what] != theirs[what]:
                yield f"cell {ours.id!r}: its {what} is not that of the source (build again)"
    for key in ("kernelspec", "language", "language_info"):
        if stored.metadata.get(key) != wanted.metadata[key]:
            yield f"its metadata {key!r} is not what the build writes"


def different_code(translation: NotebookNode, source: NotebookNode) -> Iterator[str]:
    """Yields the cells whose code differs between two languages beyond comments and LANGUAGE."""
    theirs = {cell.id: cell.source for cell in source.cells if cell.cell_type == "code"}
    for cell in translation.cells:
        if cell.cell_type == "code" and "setup" not in cell.metadata.get("tags", []):
            code = theirs.get(cell.id, "")
            if comments.without_comments(cell.source) != comments.without_comments(code):
                yield f"cell {cell.id!r}: its code is not that of the English notebook"


def _stored_faults(stored: NotebookNode) -> Iterator[str]:
    if not is_executed(stored):
        yield "it is not executed from its first to its last cell"
        return
    if normalised(stored) != stored:
        yield "its outputs are not as tools.lesson.execute stores them"
    yield from folded_outputs(stored)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    of_lesson = stated(cell.source for cell in code)
    for cell in code:
        bands = stated([cell.source]) or of_lesson  # what a function above it prints
        yield from (f"cell {cell.id!r} {fault}" for fault in output_faults(cell, bands))
        if _SHOWING & set(cell.metadata.get("tags", [])) and not cell.outputs:
            yield f"cell {cell.id!r} shows nothing"


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
