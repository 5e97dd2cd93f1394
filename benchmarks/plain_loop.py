"""What plain programs define, and the loop of `a_run`'s: one step a call, one record a step."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.data.examples import Examples
from course_lib.runtime import start_tensorflow

start_tensorflow()
PROGRAM = Path(__file__).parents[1] / "notebooks/plain/a_run.py"
_DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
_ASSIGNED = {"mesh", "cross_entropy"}


def definitions(program: Path = PROGRAM) -> dict[str, Any]:
    """Returns what a program defines, by name, on the devices of this process. Nothing trains."""
    tree = ast.parse(program.read_text())
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, _DEFINED)
        or (isinstance(node, ast.Assign) and _ASSIGNED & {ast.unparse(target) for target in node.targets})
    ]
    names: dict[str, Any] = {}
    exec(compile(tree, str(program), "exec"), names)  # AutoGraph finds the lines in the file
    return names


def training(examples: Examples) -> Callable[[int], None]:
    """Returns a function that trains some steps of the program's loop.

    Args:
        examples: the training set.
    """
    program = definitions()
    step = program["tf"].Variable(0, dtype="int64")
    records = program["records"](program["MLP"](0), step, examples.features, examples.labels, 1_000)

    def train(num_steps: int) -> None:
        for _step in range(num_steps):
            next(records)

    return train
