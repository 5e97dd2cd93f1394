"""Programs of several processes, started for a test: what each told, killing one, and a sure end."""

import contextlib
import re
import time
from pathlib import Path

import course_lib
from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster import Cluster
from lessons.lesson_11_many_processes.cluster.logs import told
from lessons.lesson_11_many_processes.programs import lines

PROGRAMS = Path(course_lib.__file__).parent / "programs"
LIMIT_SECONDS = 180
_GOES_ON = re.compile(r"goes on after (?:step )?(\d+)")


class Processes:
    """The processes of one run, by name."""

    def __init__(self, cluster):
        self.cluster = cluster

    def told(self, name):
        return told(self.output(name))

    def output(self, name):
        return self.cluster.log(name).stdout

    def losses(self, name):
        return lines.losses(self.output(name), of_failed=True)

    def went_on_after(self, name):
        """Returns from which step a process went on when it was started last."""
        return [int(found[1]) for found in map(_GOES_ON.match, self.told(name)) if found][-1]

    def names(self):
        return list(map(str, self.cluster.spec.tasks))

    def wait(self, *names):
        """Returns the exit statuses of these processes, or of all."""
        try:
            report = self.cluster.wait(LIMIT_SECONDS, *names, grace_seconds=LIMIT_SECONDS)
        except CourseError as error:
            error.add_note(self.report())
            raise
        return [report[name].status for name in names or map(str, self.cluster.spec.ending)]

    def wait_for(self, name, text):
        """Waits until a process has told this; fails when it ends before."""
        self.cluster.wait_for(name, text, LIMIT_SECONDS)

    def wait_until(self, name, holds):
        """Waits until what a process has told is as wanted; fails when it ends before."""
        until = time.monotonic() + LIMIT_SECONDS
        while not holds(self.told(name)):
            assert self.cluster.report()[name].status is None, self.report()
            assert time.monotonic() < until, self.report()
            time.sleep(0.02)

    def report(self):
        return "\n".join(f"--- {name}\n{self.cluster.log(name)}"[-5000:] for name in self.names())


@contextlib.contextmanager
def processes(program, tasks, *arguments, others=None, variables="TF_CONFIG"):
    """Starts a program once for each task; whatever happens, all have ended when the block is left.

    Args:
        program: one of `lessons.lesson_11_many_processes.programs`.
        tasks: how many processes of each job.
        arguments: of all of them.
        others: as `Cluster` takes them.
        variables: "TF_CONFIG" or "DTENSOR".
    """
    command = [PROGRAMS / f"{program}.py", *map(str, arguments)]
    with Cluster(command, tasks, others=others, variables=variables) as cluster:
        yield Processes(cluster)
