"""Starts a program as the processes of a cluster on this machine, and prints what each said.

python -m lessons.lesson_11_many_processes.cluster --worker 2 train.py --steps 20
python -m lessons.lesson_11_many_processes.cluster --worker 2 --variables DTENSOR -- \
    -m lessons.lesson_11_many_processes.programs.multi_client

On real machines their own scheduler does this: Kubernetes, Slurm.
"""

from __future__ import annotations

import argparse
import sys

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster.program import TF_CONFIG, VARIABLES
from lessons.lesson_11_many_processes.cluster.report import Report
from lessons.lesson_11_many_processes.cluster.running import LIMIT_SECONDS, Cluster
from lessons.lesson_11_many_processes.cluster_jobs import JOBS


def main() -> None:
    """Runs the program that the command line names; ends with 1 if any task failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for job in JOBS:
        parser.add_argument(f"--{job}", type=int, metavar="COUNT")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS")
    parser.add_argument("--variables", choices=VARIABLES, default=TF_CONFIG)
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script, or -m and a module; its arguments"
    )
    named = parser.parse_args()
    tasks = {job: getattr(named, job) for job in JOBS if getattr(named, job) is not None}
    try:
        program = named.program[1:] if named.program[:1] == ["--"] else named.program
        with Cluster(program, tasks, variables=named.variables) as cluster:
            try:
                report = cluster.wait(named.limit)
            except BaseException:  # the logs end with this process: whoever waits in vain says so there
                _print(cluster, cluster.report(), whole=True)
                raise
        _print(cluster, report)
    except CourseError as error:
        sys.exit(str(error))
    sys.exit(1 if report.failed else 0)


def _print(cluster: Cluster, report: Report, *, whole: bool = False) -> None:
    """Prints what each task said, of those that failed, or of all, stderr too."""
    for told in report.told:
        log = cluster.log(told.task)
        print(told.heading(), log if whole or told.failed else log.stdout, sep="\n")


if __name__ == "__main__":
    main()
