"""Executes every lesson with its solutions filled in: each check must say that the answer is right.

python -m tools.lesson.solutions [LESSON ...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from nbformat import NotebookNode

from course_lib.exercises.checks import Status
from tools.lesson.build import built_notebook
from tools.lesson.execute import ExecutionFailed, execute
from tools.lesson.sources import SOURCE_LANGUAGE, Course, Lesson, LessonError


async def solve(course: Course, lesson: Lesson) -> list[str]:
    """Returns a line about each check of a lesson that does not accept the lesson's own solution."""
    notebook = built_notebook(course, lesson, SOURCE_LANGUAGE, solved=True)
    folder = course.notebook(SOURCE_LANGUAGE, lesson.topic).parent
    folder.mkdir(parents=True, exist_ok=True)
    try:
        executed = await execute(notebook, folder)
    except ExecutionFailed as error:
        return [f"{lesson.topic} with its solutions failed:\n{error}"]
    return [f"{lesson.topic}, {fault}" for fault in refusals(executed)]


def refusals(executed: NotebookNode) -> list[str]:
    """Returns a line about each check of an executed notebook that does not say that the answer is right."""
    checks = [cell for cell in executed.cells if "check" in cell.metadata.get("tags", ())]
    shown = {cell.id: _shown(cell) for cell in checks}
    refused = {cell_id: text for cell_id, text in shown.items() if not text.startswith(Status.RIGHT.value)}
    return [f"cell {cell_id!r} refuses the solution: {text}" for cell_id, text in refused.items()]


def _shown(cell: NotebookNode) -> str:
    """Returns the last result that a cell shows, as text."""
    results = [
        output.data.get("text/plain", "") for output in cell.outputs if output.output_type == "execute_result"
    ]
    return results[-1] if results else ""


def main() -> int:
    """Runs the command line and returns its exit status."""
    arguments = argparse.ArgumentParser(prog="tools.lesson.solutions", description=__doc__)
    arguments.add_argument("lesson", nargs="*", help="such as mesh_and_layout; all where none is given")
    course = Course.here()
    try:
        lessons = list(course.lessons(tuple(arguments.parse_args().lesson) or course.topics))
        faults = [fault for lesson in lessons for fault in asyncio.run(solve(course, lesson))]
    except LessonError as error:
        faults = [str(error)]
    print("\n".join(faults) or "Every check accepts its solution.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
