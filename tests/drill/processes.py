"""Programs of several processes, started for a test: what each told, killing one, and a sure end."""

import contextlib
import tempfile
import time
from pathlib import Path

from benchmarks import cluster
from benchmarks.cases import Case
from course_lib.programs import lines

PROGRAMS = Path(cluster.__file__).parents[1] / "course_lib" / "programs"
LIMIT_SECONDS = 180


class Processes:
    """The processes of one run, by name."""

    def __init__(self, started, configs, folder):
        self.started, self.configs, self.folder = started, configs, folder

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
        until = time.monotonic() + LIMIT_SECONDS
        while not any(line.startswith(text) for line in self.told(name)):
            assert self.started[name].process.poll() is None and time.monotonic() < until, self.report()
            time.sleep(0.02)

    def send(self, name, signal):
        self.started[name].process.send_signal(signal)

    def start_again(self, name, case):
        cluster._stop(self.started[name])
        self.started[name] = cluster._start(case, name, self.configs[name], self.folder)

    def report(self):
        return "\n".join(
            f"--- {name}\n{self.output(name)}{each.stderr.read_text(errors='replace')[-3000:]}"
            for name, each in self.started.items()
        )


@contextlib.contextmanager
def processes(program, tasks, *arguments, cases=None, left_out=(), **environment):
    """Starts a program once for each task; whatever happens, all have ended when the block is left."""
    environment = {name: str(value) for name, value in environment.items()}
    shared = Case(PROGRAMS / f"{program}.py", tuple(map(str, arguments)), environment=environment)
    with (
        cluster._ports(sum(tasks.values())) as ports,
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        configs = cluster.configs(tasks, ports)
        running = Processes({}, configs, Path(folder))
        stack.callback(lambda: [cluster._stop(each) for each in running.started.values()])
        for name in configs:
            if name not in left_out:
                case = (cases or {}).get(name, shared)
                running.started[name] = cluster._start(case, name, configs[name], Path(folder))
        yield running
