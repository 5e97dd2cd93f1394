"""Tables of what works, made by running every case: how an outcome becomes a cell, and which versions ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks.cases import ANSWERED, ERROR, Outcome
from course_lib.errors import CourseError
from course_lib.measured.files import Record
from course_lib.measured.tables import cell_text
from course_lib.messages import plain

SCRIPTS = Path(__file__).parent / "keras_support"
BUILD = Path(__file__).parents[1] / "build"
TOLERANCE = 1e-5  # the largest difference from one device that still counts as equal


def measured(
    rows: Iterable[str], columns: Sequence[str], outcome: Callable[[str, str], Outcome | None]
) -> dict[str, dict[str, Record]]:
    """Returns the cells of a table by row and column, and prints each.

    Args:
        rows: what is asked.
        columns: who is asked.
        outcome: runs the case of a column and a row; None where it is not asked.
    """
    cells: dict[str, dict[str, Record]] = {}
    for row in rows:
        for column in columns:
            if (found := outcome(column, row)) is not None:
                cell = cells.setdefault(row, {})[column] = cell_of(found)
                print(f"{row:24} {column:17} {cell_text(cell):28} {dict(cell)}"[:200], flush=True)
    return cells


def versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Returns the version of each of these packages that an environment has, by its Python."""
    folders = map(str, Path(python).parents[1].glob("lib/python*/site-packages"))
    installed = {
        package.name.replace("_", "-"): package.version for package in distributions(path=list(folders))
    }
    return {name: installed[name] for name in packages if name in installed}


def required(python: Path, target: str) -> str:
    """Returns the Python of an environment that a target of the Makefile makes.

    Raises:
        CourseError: it was not made.
    """
    if not python.exists():
        raise CourseError(
            f"There is no environment in build/{python.parents[1].name}.",
            allowed="the environment that has what the cases import",
            cure=f"Make it: make {target}.",
        )
    return str(python)


def cell_of(outcome: Outcome) -> Record:
    """Returns the cell of the table for what became of a case."""
    if outcome.status == ANSWERED:
        return of_finding(outcome.found)
    message = plain(outcome.message) if outcome.status == ERROR else outcome.message
    return Record(verdict=outcome.status, message=message)


def of_finding(found: Mapping[str, Any]) -> Record:
    """Returns the cell of a case that ended without an error.

    Args:
        found: `mistaken`, whether what was asked is a mistake, which an error should have named;
            `distributed`, whether each device holds as much of every variable as was asked for; `difference`,
            the largest from the same computation on one device, and `reported_difference`, that of a loss
            that was told; `losses` before and after a training in no fixed order.
    """
    if found.get("mistaken"):
        return Record(verdict="accepted")
    compared = {"difference": found["difference"]} if "difference" in found else {}
    if not found["distributed"]:
        return Record(verdict="no-op", **compared)
    if "losses" in found:
        before, after = found["losses"]
        return Record(verdict="asynchronous" if after < before else "different", losses=[before, after])
    if not compared:
        return Record(verdict="equal")
    return _compared(found["difference"], found.get("reported_difference", 0.0))


def _compared(difference: float, reported: float) -> Record:
    if not difference <= TOLERANCE:
        return Record(verdict="different", difference=difference)
    if not reported <= TOLERANCE:
        return Record(verdict="misreported", difference=reported)
    return Record(verdict="equal", difference=max(difference, reported))
