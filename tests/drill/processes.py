"""Programs of several processes, started for a test: what each told, killing one, and a sure end."""

import contextlib
import json
import time
from pathlib import Path

import course_lib
from course_lib.cluster import Cluster
from course_lib.programs import lines

PROGRAMS = Path(course_lib.__file__).parent / "programs"
LIMIT_SECONDS = 180
ON_CPU = {"CUDA_VISIBLE_DEVICES": ""}
# What some tasks do in the place of the program: other arguments, another script, or nothing.
INSTEAD = """
import json, os, runpy, sys
task = json.loads(os.environ["TF_CONFIG"])["task"]
words = json.loads(sys.argv[1]).get(f"{task['type']} {task['index']}", sys.argv[2:])
if words:
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
"""


class Processes:
    """The processes of one run, by name."""

    def __init__(self, cluster):
        self.cluster = cluster

    def told(self, name):
        return lines.told(self.output(name))

    def output(self, name):
        return self.cluster.log(name).stdout

    def losses(self, name):
        return lines.losses(self.output(name))

    def names(self):
        return list(map(str, self.cluster.spec.tasks))

    def wait(self, *names):
        """Returns the exit statuses of these processes, or of all."""
        report = self.cluster.wait(LIMIT_SECONDS, *names, grace_seconds=LIMIT_SECONDS)
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
def processes(program, tasks, *arguments, folder=None, instead=None, variables="TF_CONFIG"):
    """Starts a program once for each task; whatever happens, all have ended when the block is left.

    Args:
        program: one of `course_lib.programs`.
        tasks: how many processes of each job.
        arguments: of all of them.
        folder: where what stands in for the program is written.
        instead: by name of a task, the command line that it gets instead, the program's path left out; a
            script's path and nothing else; or nothing, for a task that does not come.
        variables: "TF_CONFIG" or "DTENSOR".
    """
    path = str(PROGRAMS / f"{program}.py")
    command = [path, *map(str, arguments)]
    if instead is not None:
        script = folder / "instead.py"
        script.write_text(INSTEAD)
        command = [
            str(script),
            json.dumps({name: list(map(str, words)) for name, words in instead.items()}),
            *command,
        ]
    with Cluster(command, tasks, variables=variables, environment=ON_CPU) as cluster:
        yield Processes(cluster)
