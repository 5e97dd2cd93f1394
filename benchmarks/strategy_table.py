"""Which strategy works with which API, as a table: each case of `keras_support` in processes of its own."""

from __future__ import annotations

import contextlib
import math
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.cases import ANSWERED, LIMIT_SECONDS, TIMEOUT, Case, Outcome, outcome_of, run
from benchmarks.tables import BUILD, SCRIPTS, measured, required, versions
from course_lib import syllabus
from course_lib.errors import CourseError

Cluster = syllabus.module("workers.launcher").Cluster

COLUMNS = ("fit_keras_3", "fit_tf_keras", "loop_keras_3", "loop_tf_keras", "estimator")
WITH_ESTIMATOR = ("default", "one_device", "mirrored", "central_storage")  # in one process
ROWS = (*WITH_ESTIMATOR, "multi_worker", "parameter_server", "tpu")
ESTIMATOR_PYTHON = BUILD / "estimator-venv" / "bin" / "python"
TASKS = {  # the processes of the strategies that need several
    "multi_worker": {"worker": 2},
    "parameter_server": {"chief": 1, "worker": 2, "ps": 1},
}
GRACE_SECONDS = 5.0  # for what the other processes have to say once one has failed
RUNS = 5  # of each case of parameter servers, of which the one with the highest loss is recorded
PACKAGES = ("tensorflow", "tf-keras", "keras")
ESTIMATOR_PACKAGES = ("tensorflow-cpu", "tensorflow")

_DUMP = re.compile(r"\{\n.*?\n\}", re.DOTALL)  # the values of a tensor, which say nothing of the error
# What another run would name otherwise: addresses and ports, places in memory, numbers of processes.
_OF_THIS_RUN = re.compile(
    r"(?:ipv[46]:|grpc://)?\b(?:\d{1,3}(?:\.\d{1,3}){3}|localhost):\d+| at 0x[0-9a-f]+|\bpid[ =:]*\d+",
    re.IGNORECASE,
)


def outcome(column: str, row: str) -> Outcome | None:
    """Returns what became of a case, in as many processes as its strategy needs; None where it is not asked.

    Args:
        column: the API, one of `COLUMNS`.
        row: the strategy, one of `ROWS`.
    """
    if column == "estimator":
        estimator = Case(SCRIPTS / "estimator.py", (row,), str(ESTIMATOR_PYTHON))
        return together({"": run(estimator)}) if row in WITH_ESTIMATOR else None
    way, _underscore, keras = column.partition("_")
    asked = Case(SCRIPTS / "under_strategy.py", (row, way, keras))
    if row == "parameter_server":  # no two runs are alike
        return together({f"run {time}": together(run_in_cluster(asked, TASKS[row])) for time in range(RUNS)})
    return together(run_in_cluster(asked, TASKS[row]) if row in TASKS else {"": run(asked)})


def run_in_cluster(case: Case, tasks: Mapping[str, int]) -> dict[str, Outcome]:
    """Returns what became of each process that was to end by itself, in the order in which they ended.

    Args:
        case: the script, which finds its place in TF_CONFIG.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`.
    """
    program = [case.script, *case.arguments]
    cluster = Cluster(program, tasks)
    with cluster, contextlib.suppress(CourseError):  # it names those that had not ended; so does this
        cluster.wait(LIMIT_SECONDS, grace_seconds=GRACE_SECONDS)
    report = cluster.report()
    ended = {task: outcome_of(report[task].status or 0, *cluster.written(task)) for task in report.ended}
    if any(outcome.status != ANSWERED for outcome in ended.values()):
        return ended
    left = Outcome(TIMEOUT, message=f"no end within {LIMIT_SECONDS:g} s")
    return ended | {task: left for task in cluster.ending if task not in ended}


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


def measure() -> dict[str, Any]:
    """Returns what became of every case.

    Raises:
        CourseError: there is no environment with Estimators.
    """
    there = versions(required(ESTIMATOR_PYTHON, "estimator"), ESTIMATOR_PACKAGES)
    how = {
        "command": "make estimator; .venv/bin/python -m benchmarks.results strategies-support",
        "python": platform.python_version(),
        **versions(sys.executable, PACKAGES),
        "tensorflow with Estimators": there.get("tensorflow-cpu") or there["tensorflow"],
        "runs with parameter servers": str(RUNS),
    }
    return {"how": how, "support": measured(ROWS, COLUMNS, outcome)}
