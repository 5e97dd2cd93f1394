"""Programs of several processes, started for a test: what each told, killing one, and a sure end."""

import contextlib
import tempfile
import time
from pathlib import Path

from benchmarks import cluster
from benchmarks.cases import Case
from course_lib.programs import lines

PROGRAMS = Path(cluster.__file__).parents[1] / "course_lib" / "programs"
LIMIT_SECONDS = 90


class Processes:
    """The processes of one run, by name."""

    def __init__(self, started, cases, configs, folder):
        self.started, self.cases, self.configs, self.folder = started, cases, configs, folder

    def told(self, name):
        return lines.told(self.output(name))

    def output(self, name):
        return self.started[name].stdout.read_text(errors="replace")

    def losses(self, name):
        return lines.losses(self.output(name))

    def wait(self, *names):
        """Returns the exit statuses of these processes."""
        return [self.started[name].process.wait(LIMIT_SECONDS) for name in names or self.started]

    def wait_for(self, name, text):
        """Waits until a process has told a line that begins so; fails when it ends before."""
        self.wait_until(name, lambda told: any(line.startswith(text) for line in told))

    def wait_until(self, name, holds):
        """Waits until what a process has told is as wanted; fails when it ends before."""
        until = time.monotonic() + LIMIT_SECONDS
        while not holds(self.told(name)):
            assert self.started[name].process.poll() is None, self.report()
            assert time.monotonic() < until, self.report()
            time.sleep(0.02)

    def send(self, name, signal):
        self.started[name].process.send_signal(signal)

    def start(self, name):
        """Starts a process, again if it has run before."""
        if name in self.started:
            cluster._stop(self.started[name])
        self.started[name] = cluster._start(self.cases[name], name, self.configs[name], self.folder)

    def report(self):
        return "\n".join(
            f"--- {name}\n{self.output(name)}{each.stderr.read_text(errors='replace')[-3000:]}"
            for name, each in self.started.items()
        )


@contextlib.contextmanager
def processes(program, tasks, *arguments, others=(), scripts=(), left_out=(), variables=None):
    """Starts a program once for each task; whatever happens, all have ended when the block is left.

    Args:
        program: one of `course_lib.programs`.
        tasks: how many processes of each job.
        arguments: of all of them.
        others: by name of a process, the arguments that it gets instead.
        scripts: by name of a process, what it runs instead.
        left_out: the names of processes that are not started.
        variables: makes the environment of a process, beside TF_CONFIG, of its name and all ports.
    """
    with (
        cluster._ports(sum(tasks.values())) as ports,
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        configs = cluster.configs(tasks, ports)
        cases = {
            name: Case(
                Path(dict(scripts).get(name, PROGRAMS / f"{program}.py")),
                tuple(map(str, dict(others).get(name, arguments))),
                environment=variables(name, ports) if variables else {},
            )
            for name in configs
            if name not in left_out
        }
        running = Processes({}, cases, configs, Path(folder))
        stack.callback(lambda: [cluster._stop(each) for each in running.started.values()])
        for name in cases:
            running.start(name)
        yield running
