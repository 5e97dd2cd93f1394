"""Which strategy works with which API, as a table: each case of `keras_support` in processes of its own."""

from __future__ import annotations

import math
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import cluster
from benchmarks.cases import ANSWERED, Case, Outcome, run
from benchmarks.tables import cell_of, versions
from course_lib.errors import CourseError, one_of
from course_lib.measured import strategy_support
from course_lib.measured.support import Cell, Support

SCRIPTS = Path(__file__).parent / "keras_support"
ESTIMATOR_PYTHON = Path(__file__).parents[1] / "build" / "estimator-venv" / "bin" / "python"
TASKS = {  # the processes of the strategies that need several
    "multi_worker": {"worker": 2},
    "parameter_server": {"chief": 1, "worker": 2, "ps": 1},
}
RUNS = 5  # of each case of parameter servers, of which the one with the highest loss is recorded
PACKAGES = ("tensorflow", "tf-keras", "keras")
ESTIMATOR_PACKAGES = ("tensorflow-cpu", "tensorflow", "tensorflow-estimator")

_DUMP = re.compile(r"\{\n.*?\n\}", re.DOTALL)  # the values of a tensor, which say nothing of the error
# What another run would name otherwise: addresses and ports, places in memory, numbers of processes.
_OF_THIS_RUN = re.compile(
    r"(?:ipv[46]:|grpc://)?\b(?:\d{1,3}(?:\.\d{1,3}){3}|localhost):\d+| at 0x[0-9a-f]+|\bpid[ =:]*\d+",
    re.IGNORECASE,
)


def case(column: str, row: str) -> Case:
    """Returns the case of a cell of the table.

    Args:
        column: the API, one of `strategy_support.COLUMNS`.
        row: the strategy, one of `strategy_support.ROWS`.

    Raises:
        CourseError: there is no such column or row.
    """
    one_of(column, strategy_support.COLUMNS, f"There is no column {column!r}.", cure="Name one of these.")
    one_of(row, strategy_support.ROWS, f"There is no case {row!r}.", cure="Name one of these.")
    if column == "estimator":
        return Case(SCRIPTS / "estimator.py", (row,), str(ESTIMATOR_PYTHON))
    way, _underscore, keras = column.partition("_")
    return Case(SCRIPTS / "under_strategy.py", (row, way, keras))


def outcome(column: str, row: str) -> Outcome:
    """Returns what became of a case, in as many processes as its strategy needs."""
    asked = case(column, row)
    if row == "parameter_server":  # no two runs are alike
        return together({f"run {time}": together(cluster.run(asked, TASKS[row])) for time in range(RUNS)})
    return together(cluster.run(asked, TASKS[row]) if row in TASKS else {"": run(asked)})


def together(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Returns what became of all processes of a case: the first that failed, or the worst that they found."""
    for each in outcomes.values():
        if each.status != ANSWERED:
            return replace(each, message=of_any_run(each.message))
    found = [each.found for each in outcomes.values()]
    worst = max(found, key=_distance)
    return Outcome(ANSWERED, {**worst, "distributed": all(one["distributed"] for one in found)})


def _distance(found: Mapping[str, Any]) -> list[float]:
    """Returns how bad it is: how far variables are off, then told losses, then the loss at the end."""
    numbers = [
        found.get("difference", 0.0),
        found.get("reported_difference", 0.0),
        found.get("losses", [0.0])[-1],
    ]
    return [math.inf if math.isnan(each) else each for each in numbers]


def of_any_run(message: str) -> str:
    r"""Returns a message without values, addresses and numbers that only this run has.

    >>> of_any_run("ValueError: no value (PerReplica:{\n  0: [0.67 0.8]\n}) from 127.0.0.1:4077")
    'ValueError: no value (PerReplica:{...}) from ...'
    """
    return _OF_THIS_RUN.sub("...", _DUMP.sub("{...}", message))


def measure() -> Support:
    """Returns what became of every case.

    Raises:
        CourseError: there is no environment with Estimators.
    """
    if not ESTIMATOR_PYTHON.exists():
        raise CourseError(
            "There is no environment with Estimators.",
            allowed="one in build/estimator-venv",
            cure="Make it: make estimator.",
        )
    cells = {
        row: {
            column: _cell(column, row)
            for column in strategy_support.COLUMNS
            if strategy_support.is_asked(column, row)
        }
        for row in strategy_support.ROWS
    }
    there = versions(str(ESTIMATOR_PYTHON), ESTIMATOR_PACKAGES)
    estimators = there.get("tensorflow-cpu") or there["tensorflow"]
    how = {
        "command": "make estimator; .venv/bin/python -m benchmarks.results 09_strategies",
        "python": platform.python_version(),
        **versions(sys.executable, PACKAGES),
        "tensorflow with Estimators": estimators,
        "runs with parameter servers": str(RUNS),
    }
    return Support(how, cells)


def _cell(column: str, row: str) -> Cell:
    found = cell_of(outcome(column, row))
    print(f"{row:17} {column:14} {found.text():28} {found.difference} {found.message[:100]}", flush=True)
    return found
