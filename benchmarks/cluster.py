"""Runs a case in the processes of a cluster on this machine, and says what became of each."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from benchmarks.cases import ANSWERED, LIMIT_SECONDS, TIMEOUT, Case, Outcome, outcome_of
from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster import Cluster

GRACE_SECONDS = 5.0  # for what the others have to say once one has failed


def run(case: Case, tasks: Mapping[str, int], limit_seconds: float = LIMIT_SECONDS) -> dict[str, Outcome]:
    """Returns what became of each process that was to end by itself, in the order in which they ended.

    Args:
        case: the script, which finds its place in TF_CONFIG.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`.
        limit_seconds: when all that is left is stopped.
    """
    program = [case.script, *case.arguments]
    cluster = Cluster(program, tasks, environment=case.environment, python=case.python)
    with cluster, contextlib.suppress(CourseError):  # it names those that had not ended; so does this
        cluster.wait(limit_seconds, grace_seconds=GRACE_SECONDS)
    report = cluster.report()
    logs = {task: cluster.log(task) for task in report.ended}
    ended = {task: outcome_of(report[task].status or 0, log.stdout, log.stderr) for task, log in logs.items()}
    if any(outcome.status != ANSWERED for outcome in ended.values()):
        return ended
    left = Outcome(TIMEOUT, message=f"no end within {limit_seconds:g} s")
    return ended | {task: left for task in map(str, cluster.spec.ending) if task not in ended}
