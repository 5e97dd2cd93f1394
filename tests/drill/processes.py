"""Programs of several processes, started for a test: what each told, killing one, and a sure end."""

import contextlib
import re

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster import Cluster

LIMIT_SECONDS = 180
_GOES_ON = re.compile(r"goes on after (?:step )?(\d+)")
_STEP = re.compile(r"step (\d+) loss (\S+)")


class Processes:
    """The processes of one run, by name."""

    def __init__(self, cluster):
        self.cluster = cluster

    def told(self, name):
        return list(self.cluster.report()[name].lines)

    def losses(self, name):
        """Returns the losses that a process told, also one that failed."""
        steps = filter(None, map(_STEP.fullmatch, self.told(name)))
        return {int(step[1]): float(step[2]) for step in steps}

    def went_on_after(self, name):
        """Returns from which step a process went on when it was started last."""
        return [int(found[1]) for found in map(_GOES_ON.match, self.told(name)) if found][-1]

    def names(self):
        return list(map(str, self.cluster.spec.tasks))

    def wait(self, *names):
        """Returns the exit statuses of these processes, or of all that end by themselves."""
        try:
            report = self.cluster.wait(LIMIT_SECONDS, *names, grace_seconds=LIMIT_SECONDS)
        except CourseError as error:
            error.add_note(self.report())
            raise
        return [report[name].status for name in names or map(str, self.cluster.spec.ending)]

    def wait_for(self, name, text):
        """Waits until a process has told this; fails when it ends before."""
        self.cluster.wait_for(name, text, LIMIT_SECONDS)

    def report(self):
        return "\n".join(f"--- {name}\n{self.cluster.log(name)}"[-5000:] for name in self.names())


@contextlib.contextmanager
def processes(program, tasks, *arguments, others=None, variables="TF_CONFIG"):
    """Starts a program of lesson 11 once for each task; all have ended when the block is left."""
    command = ["-m", f"lessons.lesson_11_many_processes.programs.{program}", *arguments]
    with Cluster(command, tasks, others=others, variables=variables) as cluster:
        yield Processes(cluster)
