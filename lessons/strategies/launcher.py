"""Starts a file as the tasks of a cluster on this machine; each ends with the cell that started it."""

from __future__ import annotations

import contextlib
import html
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from IPython import get_ipython
from IPython.display import display

from course_lib import messages, processes
from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.strategies.cluster_spec import place
from lessons.strategies.report import Report, TaskReport

LIMIT_SECONDS = 300.0
GRACE_SECONDS = 60.0  # for what the others have to say once one has failed

Program = Sequence[object]


class Cluster:
    """Processes of one program on this machine, each told its place in the cluster.

    with Cluster(["train.py", "--epochs", "2"], {"worker": 2}) as cluster:
        report = cluster.wait()
    report

    At the end of the block every process has ended, with what it started: also after an exception or an
    interrupt, and when this process itself is killed.

    Args:
        program: what stands behind `python` on the command line: a file and its arguments.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`.
        others: by the names of tasks what these run instead: for drills with a worker unlike the others.
        absent: a task that every other one waits for, and that never starts.
        variables: which variables tell a process its place: "TF_CONFIG", or "DTENSOR" for those of DTensor.

    Attributes:
        addresses: for each job the addresses of its tasks.
    """

    def __init__(
        self,
        program: Program,
        tasks: Mapping[str, int],
        *,
        others: Mapping[str, Program] | None = None,
        absent: str = "",
        variables: Literal["TF_CONFIG", "DTENSOR"] = "TF_CONFIG",
    ) -> None:
        self._held = contextlib.ExitStack()  # the ports
        self.addresses = {
            job: [processes.hold_port(self._held) for _task in range(count)] for job, count in tasks.items()
        }
        self._folder = tempfile.TemporaryDirectory(prefix="cluster-")
        self._commands: dict[str, list[str]] = {}
        self._environments: dict[str, dict[str, str]] = {}
        inherited = {
            key: os.environ[key] for key in os.environ if not key.startswith(("TF_CONFIG", "DTENSOR"))
        }
        for job, addresses in self.addresses.items():
            for index in range(len(addresses)):
                task, own = f"{job} {index}", place(self.addresses, job, index, variables)
                if task == absent:
                    continue
                self._commands[task] = [sys.executable, *map(str, (others or {}).get(task, program))]
                self._environments[task] = {**inherited, **processes.OF_EACH, **own}
        self._forks = not absent  # the stack of who waits in vain is to have no frame but the program's
        self._guarded: dict[str, subprocess.Popen[bytes]] = {}
        self._num_read = dict.fromkeys(self._commands, 0)  # lines up to the one that was waited for
        self._stopped: set[str] = set()  # who was killed or terminated

    def __enter__(self) -> Self:
        for task in self._commands:
            self._start(task)
        return self

    def __exit__(self, *_raised: object) -> None:
        for task in self._commands:
            self.kill(task)
        self._held.close()

    def set_variables(self, task: str, variables: Mapping[str, str]) -> None:
        """Sets environment variables of a task, in place of its own, from its next start on."""
        self._environments[task].update(variables)

    def wait(self, limit_seconds: float = LIMIT_SECONDS, *, grace_seconds: float = GRACE_SECONDS) -> Report:
        """Returns what all printed and how they ended, once those have ended that end by themselves.

        Where one has failed, the others have some time left to say so. Who has not ended then, or within the
        limit, still runs by the report.
        """
        self._wait_until(lambda: all(map(self._has_ended, self.ending)), limit_seconds, grace_seconds)
        return self.report()

    def wait_for(self, task: str, words: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Waits until a task prints a line with these words, after the lines that were waited for before.

        Args:
            task: such as "worker 1".
            words: such as "step 5".
            limit_seconds: the longest that it may take; where a task fails, a minute from then.

        Raises:
            CourseError: the task ended without printing it, another one failed, or the time is over.
        """

        def found() -> int | None:
            lines = self._lines(task)
            return next((at for at in range(self._num_read[task], len(lines)) if words in lines[at]), None)

        self._wait_until(lambda: self._has_ended(task) or found() is not None, limit_seconds, GRACE_SECONDS)
        if (at := found()) is None:
            raise CourseError(
                _("{task} did not say {words!r}.", task=task, words=words),
                allowed=_("words of a line that it prints"),
                cure=_("Read what it wrote: print(cluster.log({task!r}))", task=[*self._failed(), task][0]),
            )
        self._num_read[task] = at + 1

    @property
    def ending(self) -> list[str]:
        """The tasks that end by themselves: where there are servers the chief, which the others serve."""
        return [task for task in self._commands if "ps" not in self.addresses or task.startswith("chief")]

    def kill(self, task: str) -> None:
        """Kills a task with SIGKILL, and its process group; returns when it is dead."""
        if not self._has_ended(task):
            self._stopped.add(task)
            self._guarded[task].communicate()  # closes the guard's pipe

    def terminate(self, task: str) -> None:
        """Sends a task SIGTERM, as a machine does that is soon taken away; the task may save first."""
        if not self._has_ended(task):
            self._stopped.add(task)
            self._guarded[task].terminate()

    def restart(self, task: str) -> None:
        """Starts a task again, at its address, after killing it; returns when a server answers workers."""
        self.kill(task)
        self._num_read[task] = len(self._lines(task))
        self._start(task)
        job, index = task.split()
        host, port = self.addresses[job][int(index)].split(":")
        while job == "ps" and not self._has_ended(task):  # a worker that asks too early fails its next step
            with socket.socket() as caller:
                if caller.connect_ex((host, int(port))) == 0:
                    time.sleep(2)  # a worker that has found it gone asks again a second later
                    break
            time.sleep(0.1)

    def report(self) -> Report:
        """Returns what each task has printed so far, and how it has ended."""
        return Report(tuple(map(self._report, self._commands)))

    def log(self, task: str) -> str:
        """Returns all that a task wrote, to stdout and then to stderr."""
        return "".join(self.written(task))

    def written(self, task: str) -> tuple[str, str]:
        """Returns all that a task wrote to stdout, and to stderr."""
        stdout, stderr = (path.read_text(errors="replace") for path in self._files(task))
        return stdout, stderr

    def _files(self, task: str) -> list[Path]:
        return [Path(self._folder.name, f"{task}.{kind}") for kind in ("out", "err")]

    def _lines(self, task: str) -> list[str]:
        """Returns what a task printed; a line that is not yet whole is left out."""
        return self.written(task)[0].rpartition("\n")[0].splitlines()

    def _start(self, task: str) -> None:
        self._stopped.discard(task)
        stdout, stderr = self._files(task)
        command = self._commands[task]
        with contextlib.suppress(OSError):  # not a file: Python will say so
            imports_it = self._forks and "import tensorflow" in Path(command[1]).read_text()
            if imports_it and (address := processes.forks()):
                command = ["--fork", address, *command[1:]]
        with stdout.open("ab") as out, stderr.open("ab") as log:
            self._guarded[task] = processes.guarded(command, out, log, self._environments[task])

    def _has_ended(self, task: str) -> bool:
        return self._guarded[task].poll() is not None

    def _failed(self) -> list[str]:
        """Returns those that ended with an error, and not because they were stopped."""
        return [task for task, each in self._guarded.items() if each.poll() and task not in self._stopped]

    def _report(self, task: str) -> TaskReport:
        ending = messages.ending(self.written(task)[1]) if task in self._failed() else ""
        error, message = messages.parts(ending)
        if not error or ending.startswith("tensorflow."):
            message = ""
        return TaskReport(task, tuple(self._lines(task)), self._guarded[task].poll(), error, message)

    def _wait_until(self, holds: Callable[[], bool], limit_seconds: float, grace_seconds: float) -> None:
        """Waits until something holds or the time is over, and shows the last lines of all meanwhile."""
        until, failed = time.monotonic() + limit_seconds, False
        with _live() as refresh:
            while not holds() and time.monotonic() < until:
                time.sleep(0.1)
                if not failed and self._failed():
                    failed, until = True, min(until, time.monotonic() + grace_seconds)
                refresh({each.heading(): each.lines[-12:] for each in self.report().tasks})


@contextlib.contextmanager
def _live() -> Iterator[Callable[[Mapping[str, Sequence[str]]], None]]:
    """Yields what shows lines under headings while a cell runs; it leaves nothing behind."""
    if getattr(get_ipython(), "kernel", None) is None:  # not in a notebook
        yield lambda _lines: None
        return
    nothing = {"text/plain": ""}
    handle = display(nothing, raw=True, display_id=True)

    def refresh(lines: Mapping[str, Sequence[str]]) -> None:
        columns = "".join(
            '<pre style="flex:1 1 18em;white-space:pre-wrap">'
            f"<b>{html.escape(heading)}</b><br>{'<br>'.join(map(html.escape, printed))}</pre>"
            for heading, printed in lines.items()
        )
        row = f'<div style="display:flex;flex-wrap:wrap;gap:0 1.5em">{columns}</div>'
        handle.update({"text/html": row, **nothing}, raw=True)

    try:
        yield refresh
    finally:
        handle.update(nothing, raw=True)


def behind_a_proxy(program: Program, **variables: str) -> Cluster:
    """Returns a cluster of two workers with a proxy that is not there, from which nothing is exempt."""
    cluster = Cluster(program, {"worker": 2})
    for environment in cluster._environments.values():
        del environment["no_grpc_proxy"]
        environment.update({"http_proxy": f"http://{processes.HOST}:9", **variables})
    return cluster
