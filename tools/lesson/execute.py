"""Executes the built notebooks and stores their outputs, so that executing twice changes no byte.

    python -m tools.lesson.execute [LESSON ...]

A cell that raises fails, and leaves its notebook without outputs. Appendices run in their own environment;
where it is missing or out of date they keep what outputs they have.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from tools.environments import estimator
from tools.lesson.sources import Course, LessonError
from tools.lesson.stored_outputs import normalised

CELL_TIMEOUT_SECONDS = 600
NOTEBOOKS_AT_A_TIME = 2
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class ExecutionFailed(Exception):  # noqa: N818 - reads well where it is raised
    """A notebook did not run to its end: the message holds the cell and its traceback."""


async def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Returns the notebook with the outputs of every cell, normalised.

    Args:
        notebook: as built; it stays as it is.
        folder: the kernel's working folder.

    Raises:
        ExecutionFailed: a cell raised, took too long, or ended the kernel.
    """
    executed = copy.deepcopy(notebook)
    client = NotebookClient(
        executed,
        timeout=CELL_TIMEOUT_SECONDS,
        kernel_name=notebook.metadata.kernelspec.name,
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        await client.async_execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise ExecutionFailed(_COLOURS.sub("", str(error))) from error
    return normalised(executed)


def is_executed(notebook: NotebookNode) -> bool:
    """Returns whether every code cell ran, from first to last."""
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    return bool(counts) and counts == list(range(1, len(counts) + 1))


async def execute_files(paths: Sequence[Path]) -> list[str]:
    """Executes notebooks in place, and returns a line about each that failed."""
    turns = asyncio.Semaphore(NOTEBOOKS_AT_A_TIME)

    async def one(path: Path) -> str:
        async with turns:
            started = time.monotonic()
            try:
                executed = await execute(nbformat.read(path, 4), path.parent)
            except ExecutionFailed as error:
                return f"{path.parent.name}/{path.name} failed:\n{error}"
            nbformat.write(executed, path)
            seconds = time.monotonic() - started
            print(f"{path.parent.name}/{path.name} executed in {seconds:.0f} s", flush=True)
            return ""

    return [failure for failure in await asyncio.gather(*map(one, paths)) if failure]


def main() -> int:
    """Runs the command line and returns its exit status."""
    arguments = argparse.ArgumentParser(prog="tools.lesson.execute", description=__doc__)
    arguments.add_argument("lesson", nargs="*", help="such as mesh_and_layout; all where none is given")
    names = tuple(arguments.parse_args().lesson)
    course = Course.here()
    try:
        lessons = list(course.lessons(names))
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    # Appendices stay as they are unless `make estimator` was run.
    left = [] if estimator.is_ready() else [lesson for lesson in lessons if lesson.is_appendix]
    for lesson in left:
        print(f"{lesson.topic} is not executed: its environment is missing or out of date (make estimator)")
    paths = [
        course.notebook(language, lesson.topic)
        for lesson in lessons
        if lesson not in left
        for language in course.languages
    ]
    failures = asyncio.run(execute_files(paths))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures or (names and left) else 0


if __name__ == "__main__":
    sys.exit(main())
