"""Starts a program as the processes of a cluster on this machine, and prints what each wrote.

python -m lessons.lesson_11_many_processes.cluster --worker 2 train.py --steps 20
"""

import argparse
import sys

from lessons.lesson_11_many_processes.cluster.running import Cluster
from lessons.lesson_11_many_processes.cluster_jobs import IN_CLUSTER


def main() -> None:
    """Runs the program that the command line names; ends with 1 if any task failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for job in IN_CLUSTER:
        parser.add_argument(f"--{job}", type=int, metavar="COUNT", default=0)
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script and its arguments")
    arguments = parser.parse_args()
    tasks = {job: getattr(arguments, job) for job in IN_CLUSTER if getattr(arguments, job)}
    with Cluster(arguments.program, tasks) as cluster:
        report = cluster.wait()
        for told in report.told:
            print(told.heading(), cluster.log(told.task), sep="\n")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
