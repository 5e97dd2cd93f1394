"""Starts a program as the processes of a cluster on this machine, and prints what each wrote.

python -m course_lib.cluster --worker 2 train.py --steps 20
python -m course_lib.cluster --worker 2 --variables DTENSOR -- -m course_lib.programs.multi_client

On real machines their own scheduler does this: Kubernetes, Slurm.
"""

from __future__ import annotations

import argparse
import sys

from course_lib.cluster.environment import TF_CONFIG, VARIABLES
from course_lib.cluster.running import LIMIT_SECONDS, Cluster
from course_lib.specs.cluster_jobs import IN_CLUSTER


def main() -> None:
    """Runs the program that the command line names; ends with 1 if any task failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for job in IN_CLUSTER:
        parser.add_argument(f"--{job}", type=int, metavar="COUNT")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS")
    parser.add_argument("--variables", choices=VARIABLES, default=TF_CONFIG)
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script, or -- -m and a module; its arguments"
    )
    arguments = parser.parse_args()
    program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    tasks = {job: getattr(arguments, job) for job in IN_CLUSTER if getattr(arguments, job)}
    with Cluster(program, tasks, variables=arguments.variables) as cluster:
        try:
            report = cluster.wait(arguments.limit)
        finally:  # the logs end with this process: whoever waits in vain says so there
            for told in cluster.report().told:
                print(told.heading(), cluster.log(told.task), sep="\n")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
