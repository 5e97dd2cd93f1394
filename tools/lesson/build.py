"""Builds the notebooks: sources and catalogues in, one notebook a lesson and language out.

    python -m tools.lesson.build [LESSON ...]

A notebook whose code did not change keeps its outputs; any other loses them, until it is executed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import nbformat
from nbformat import NotebookNode

from tools.environments import estimator
from tools.lesson import comments, exercises, first_cell, markdown_blocks
from tools.lesson.cells import Cell
from tools.lesson.execute import is_executed
from tools.lesson.maps import maps
from tools.lesson.references import APPENDIX_AT_THE_START, topics
from tools.lesson.sources import Course, Lesson, LessonError
from tools.lesson.texts import OPEN_IN_COLAB, SOLUTION, Translate, translations

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_KERNEL_OF_APPENDICES = {**_KERNEL, "display_name": estimator.KERNEL_TITLE, "name": estimator.KERNEL}
# What was measured stays folded until the reader runs the cell or opens it.
_FOLDED = {"jupyter": {"outputs_hidden": True}}
# So does code that the reader knows from another lesson.
_KNOWN = {"jupyter": {"source_hidden": True}}
_FOLDED_TEXT = """\
<details>
<summary>{title}</summary>

{text}

</details>"""


def built_cells(course: Course, lesson: Lesson, language: str, *, solved: bool = False) -> tuple[Cell, ...]:
    """Returns a lesson's cells as the reader gets them.

    Args:
        course: gives the catalogues and the public address.
        lesson: the source.
        language: the reader's.
        solved: whether exercises hold their solutions; readers get stubs.

    Raises:
        LessonError: a cell that cannot be built.
    """
    translate = translations(course.shared_catalogue(language), course.catalogue(language, lesson.topic))

    def texts(english: str) -> str:
        return course.resolved(translate(english), translate)

    cells: list[Cell] = []
    exercise: Cell | None = None
    for cell in lesson.cells:
        try:
            cells.append(_built(course, lesson, cell, language, texts, solved=solved))
            if exercise is not None:
                cells.append(_solution_cell(exercise, texts))
        except (LessonError, SyntaxError) as error:
            raise LessonError(f"{lesson.topic}, cell {cell.cell_id!r}: {error}") from error
        exercise = cell if "exercise" in cell.tags else None
    return (_opening(course, lesson, language, cells[0], texts), *cells[1:])


def built_notebook(course: Course, lesson: Lesson, language: str, *, solved: bool = False) -> NotebookNode:
    """Returns a lesson's notebook, not executed: arguments as `built_cells`."""
    cells = built_cells(course, lesson, language, solved=solved)
    metadata = {
        "kernelspec": _KERNEL_OF_APPENDICES if lesson.is_appendix else _KERNEL,
        "language_info": {"name": "python"},
        "language": language,
    }
    notebook: NotebookNode = nbformat.v4.new_notebook(metadata=metadata)
    notebook.cells = [_notebook_cell(cell) for cell in cells]
    return notebook


def _built(
    course: Course, lesson: Lesson, cell: Cell, language: str, texts: Translate, *, solved: bool
) -> Cell:
    if cell.kind == "markdown":
        text = markdown_blocks.joined(texts(markdown_blocks.joined(cell.source)))
        if (cell.cell_id or "").startswith("note-"):
            title, _, text = text.partition("\n\n")
            text = _FOLDED_TEXT.format(title=markdown_blocks.html_of(title), text=text)
        return replace(cell, source=text)
    if "setup" in cell.tags:
        if lesson.is_appendix:
            return replace(cell, source=first_cell.of_appendices(language, cell.source, texts))
        return replace(cell, source=first_cell.first_cell(course, language, cell.source))
    if topics(cell.asked):
        raise LessonError("a card refers to no lesson: its stored outputs would keep the number")
    code = cell.source
    if "exercise" in cell.tags:
        code = exercises.solution(code) if solved else exercises.stub(code)
    return replace(cell, source=comments.translated(code, texts))


def _solution_cell(exercise: Cell, texts: Translate) -> Cell:
    code = comments.translated(exercises.solution(exercise.source), texts)
    text = _FOLDED_TEXT.format(title=texts(SOLUTION), text=f"```python\n{code}\n```")
    return Cell("markdown", text, f"{exercise.cell_id}-solution", ("solution",))


def _opening(course: Course, lesson: Lesson, language: str, cell: Cell, texts: Translate) -> Cell:
    """Returns the first cell with the lesson's number in its title, and a link to Colab if there is one."""
    number = lesson.place.number
    if lesson.is_appendix:
        number = texts(APPENDIX_AT_THE_START).format(number=number)
    address = course.colab_address(language, lesson.topic)
    link = f"\n\n[{texts(OPEN_IN_COLAB)}]({address})" if address else ""
    return replace(cell, source=re.sub(r"^# ", f"# {number}. ", cell.source, count=1) + link)


def _notebook_cell(cell: Cell) -> NotebookNode:
    make: Callable[..., NotebookNode] = (
        nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
    )
    metadata: dict[str, object] = {"tags": list(cell.tags)} if cell.tags else {}
    if "reveal" in cell.tags:
        metadata |= _FOLDED
    if "known" in cell.tags:
        metadata |= _KNOWN
    return make(cell.source, id=cell.cell_id, metadata=metadata)


def _keep_outputs(notebook: NotebookNode, stored: NotebookNode) -> None:
    """Copies the stored outputs into a notebook with the same code."""
    ours, theirs = ([cell for cell in each.cells if cell.cell_type == "code"] for each in (notebook, stored))
    if [(cell.id, cell.source) for cell in ours] == [(cell.id, cell.source) for cell in theirs]:
        for cell, done in zip(ours, theirs, strict=True):
            cell.outputs, cell.execution_count = done.outputs, done.execution_count


def build(course: Course, names: tuple[str, ...] = ()) -> Iterator[tuple[str, bool]]:
    """Writes the notebooks of these lessons, and removes those of lessons that are gone.

    All are written where none is named, and where numbers changed: then notebooks are renamed, and texts name
    others. The maps in the READMEs are made anew.

    Yields:
        The path of each notebook from the course's root, and whether it still has its outputs.
    """
    renumbered = [_renumber(course, language) for language in course.languages]
    for language in course.languages:
        for lesson in course.lessons(() if any(renumbered) else names):
            path = course.notebook(language, lesson.topic)
            notebook = built_notebook(course, lesson, language)
            if path.exists():
                _keep_outputs(notebook, nbformat.read(path, 4))
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, path)
            yield path.relative_to(course.root).as_posix(), is_executed(notebook)
        for path in course.strangers(language):
            path.unlink()
    for path, text in maps(course):
        path.write_text(text, "utf-8")


def _renumber(course: Course, language: str) -> bool:
    """Renames notebooks whose lessons have other numbers now, and returns whether there were any."""
    found = False
    by_topic = {place.topic: place for place in course.places}
    for path in course.strangers(language):
        place = by_topic.get(path.stem.partition("_")[2])
        if place is not None:
            path.rename(path.with_name(place.notebook))
            found = True
    return found


def main() -> int:
    """Runs the command line and returns its exit status."""
    arguments = argparse.ArgumentParser(prog="tools.lesson.build", description=__doc__)
    arguments.add_argument("lesson", nargs="*", help="such as mesh_and_layout; all where none is given")
    try:
        for path, has_outputs in build(Course.here(), tuple(arguments.parse_args().lesson)):
            print(path, "" if has_outputs else "(to be executed)")
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
