"""What each Keras distributes, as a table: each case of `benchmarks/keras_support` in its own process."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from benchmarks.cases import Case, run
from benchmarks.tables import cell_of, versions
from course_lib.errors import CourseError, one_of
from course_lib.measured import keras_support
from course_lib.measured.support import Cell, Support

SCRIPTS = Path(__file__).parent / "keras_support"
JAX_PYTHON = Path(__file__).parents[1] / "build" / "jax-venv" / "bin" / "python"
GROUP_SIZE = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
_UNCOMBINED = "_uncombined"
PACKAGES = ("tensorflow", "tf-keras", "keras", "jax")


def case(column: str, row: str) -> Case:
    """Returns the case of a cell of the table.

    Args:
        column: who is asked, one of `keras_support.COLUMNS`.
        row: what is asked, one of `keras_support.ROWS`.

    Raises:
        CourseError: there is no such column or row.
    """
    one_of(column, keras_support.COLUMNS, f"There is no column {column!r}.", cure="Name one of these.")
    one_of(row, keras_support.ROWS, f"There is no case {row!r}.", cure="Name one of these.")
    if column == "tf_keras":
        uncombined = {GROUP_SIZE: "1"} if row.endswith(_UNCOMBINED) else {}
        return Case(SCRIPTS / "tf_keras_layouts.py", (row.removesuffix(_UNCOMBINED),), environment=uncombined)
    backend = column.removeprefix("keras_")
    python = str(JAX_PYTHON) if backend == "jax" else sys.executable
    return Case(SCRIPTS / "keras_3.py", (row,), python, {"KERAS_BACKEND": backend})


def measure() -> Support:
    """Returns what became of every case.

    Raises:
        CourseError: there is no environment with JAX and Keras.
    """
    if not JAX_PYTHON.exists():
        raise CourseError(
            "There is no environment with JAX and Keras.",
            allowed="one in build/jax-venv",
            cure="Make it: make jax.",
        )
    here, there = versions(sys.executable, PACKAGES), versions(str(JAX_PYTHON), PACKAGES)
    asked = {
        row: [column for column in keras_support.COLUMNS if keras_support.is_asked(column, row)]
        for row in keras_support.ROWS
    }
    cells = {row: {column: _cell(column, row) for column in columns} for row, columns in asked.items()}
    how = {
        "command": "make jax; .venv/bin/python -m benchmarks.results 08_keras",
        "python": platform.python_version(),
        "devices": "8",
        **here,
        **{f"{name} beside JAX" if name in here else name: version for name, version in there.items()},
    }
    return Support(how, cells)


def _cell(column: str, row: str) -> Cell:
    outcome = run(case(column, row))
    found = cell_of(outcome)
    print(f"{column:17} {row:24} {found.text():28} {found.difference} {found.message[:100]}", flush=True)
    return found
