"""Starts a file as the tasks of a cluster on this machine; each ends with the cell that started it."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

from course_lib import guard
from course_lib.errors import CourseError
from course_lib.i18n import _

LIMIT_SECONDS = 300.0
GRACE_SECONDS = 60.0  # for what the others have to say once one has failed

Program = Sequence[object]

_HOST = "127.0.0.1"
# What a traceback of Python's ends with, and one of faulthandler's begins with: module, name and message.
_ERROR = re.compile(r"^((?:\w+\.)*)(\w+Error|Timeout)\b(?:: )?(.*)$", re.M)
_MANY_DIGITS = re.compile(r"\d+\.\d{3,}")
# What every task gets: the port that is held for it, also after a restart; no proxy on the way to the others;
# few threads, since all share this machine; no GPU, of which each would take the whole memory. TensorFlow's
# handler of preemptions asks a server of Google's whether it runs there: the question goes nowhere.
_OF_EVERY_TASK = {
    "CUDA_VISIBLE_DEVICES": "",
    "GCE_METADATA_IP": "127.0.0.1:9",
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONUNBUFFERED": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_GRPC_REUSE_PORT": "1",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
    "no_grpc_proxy": _HOST,
}


@dataclass(frozen=True)
class Told:
    """What is known of a task.

    Attributes:
        task: its name, such as "worker 1".
        lines: what it printed, of all of its runs.
        status: its exit status, or the negative number of the signal that ended it; None while it runs.
        failed: whether it ended with an error, and nobody asked for its end.
        error: the name of the error that ended it, such as "ValueError".
        message: what the error says; of one of TensorFlow's own nothing, for there are ports in it.
    """

    task: str
    lines: tuple[str, ...]
    status: int | None = None
    failed: bool = False
    error: str = ""
    message: str = ""

    @property
    def losses(self) -> dict[int, float]:
        """The loss of each step, of lines such as "step 1 loss 2.3026".

        >>> Told("worker 0", ("worker 0 of 2", "step 1 loss 2.3026")).losses
        {1: 2.3026}
        """
        lines = (line.split() for line in self.lines if line.startswith("step "))
        return {int(words[1]): float(words[3]) for words in lines}

    def heading(self) -> str:
        """Returns its name and how it ended, in the reader's language.

        >>> Told("worker 0", (), -9).heading(), Told("worker 1", ()).heading()
        ('worker 0: ended by SIGKILL', 'worker 1: runs')
        """
        if self.status is None:
            ending = _("runs")
        elif self.status < 0:
            ending = _("ended by {signal}", signal=signal.Signals(-self.status).name)
        elif self.error:
            ending = _("ended by {error}", error=self.error)
        else:
            ending = _("ended with exit status {status}", status=self.status) if self.status else _("ended")
        return _("{task}: {ending}", task=self.task, ending=ending)


@dataclass(frozen=True, repr=False)
class Report:
    """What the tasks of a cluster printed and how they ended. It shows itself, with two decimals of a number.

    >>> Report((Told("worker 0", ("step 1 loss 1.751",), 0), Told("worker 1", (), -9)))
    worker 0: ended
      step 1 loss 1.75
    worker 1: ended by SIGKILL

    Attributes:
        told: what is known of each task, in the order of the cluster.
        ended: the names of the tasks that have ended, in the order in which they were seen to.
    """

    told: tuple[Told, ...]
    ended: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the tasks that failed."""
        return tuple(each.task for each in self.told if each.failed)

    def __getitem__(self, task: str) -> Told:
        """Returns what is known of a task."""
        return next(each for each in self.told if each.task == task)

    def __repr__(self) -> str:
        told = ([each.heading(), *each.lines, *filter(None, [each.message])] for each in self.told)
        lines = ("\n  ".join(of_task) for of_task in told)
        return _MANY_DIGITS.sub(lambda number: f"{float(number[0]):.2f}", "\n".join(lines))


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
        variables: which variables tell a process its place: "TF_CONFIG", or "DTENSOR" for those of DTensor.
        environment: what else is set for each.
        python: the interpreter.

    Attributes:
        addresses: for each job the addresses of its tasks.
    """

    def __init__(
        self,
        program: Program,
        tasks: Mapping[str, int],
        *,
        others: Mapping[str, Program] | None = None,
        variables: Literal["TF_CONFIG", "DTENSOR"] = "TF_CONFIG",
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self._held = contextlib.ExitStack()  # the ports
        self.addresses = {
            job: [_hold_port(self._held) for _task in range(count)] for job, count in tasks.items()
        }
        self._folder = tempfile.TemporaryDirectory(prefix="cluster-")
        self._processes: dict[str, _Process] = {}
        self._ended: dict[str, None] = {}
        self._closed = False
        for job, addresses in self.addresses.items():
            for index in range(len(addresses)):
                task = f"{job} {index}"
                own = place(self.addresses, job, index, variables)
                own |= environment or {}
                command = [python, *map(str, (others or {}).get(task, program))]
                self._processes[task] = _Process(task, command, own, Path(self._folder.name))

    def __enter__(self) -> Self:
        for process in self._processes.values():
            process.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.report()
        self._closed = True  # whoever ends from here on did not end by itself
        for process in self._processes.values():
            process.kill()
        self._held.close()

    def set_variables(self, task: str, variables: Mapping[str, str]) -> None:
        """Sets environment variables of a task, in place of its own, from its next start on."""
        self._processes[task].environment.update(variables)

    def wait(self, limit_seconds: float = LIMIT_SECONDS, *, grace_seconds: float = GRACE_SECONDS) -> Report:
        """Returns what all printed and how they ended, once those have ended that end by themselves.

        Where one has failed, the others have some time left to say so; then it returns without their end.

        Args:
            limit_seconds: the longest that it may take.
            grace_seconds: how long to wait for the others once one has failed.

        Raises:
            CourseError: the time is over; it names who has not ended.
        """
        awaited = [self._processes[task] for task in self.ending]
        self._wait_until(lambda: all(each.ended for each in awaited), limit_seconds, grace_seconds)
        report = self.report()
        left = [each.task for each in awaited if not each.ended]
        if left and not report.failed:
            raise CourseError(
                _("{tasks} had not ended after {limit:g} s.", tasks=_(", ").join(left), limit=limit_seconds),
                allowed=_("an end of {tasks} within the limit", tasks=_(", ").join(self.ending)),
                cure=_("Read what it wrote: print(cluster.log({task!r}))", task=left[0]),
            )
        return report

    def wait_for(self, task: str, words: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Waits until a task prints a line with these words, after the lines that were waited for before.

        Args:
            task: such as "worker 1".
            words: such as "step 5".
            limit_seconds: the longest that it may take; where a task fails, a minute from then.

        Raises:
            CourseError: the task ended without printing it, another one failed, or the time is over.
        """
        process = self._processes[task]
        self._wait_until(lambda: process.ended or process.says(words), limit_seconds, GRACE_SECONDS)
        if not process.says(words):
            failed = [*self.report().failed, task][0]
            raise CourseError(
                _("{task} did not say {words!r}.", task=task, words=words),
                allowed=_("words of a line that it prints"),
                cure=_("Read what it wrote: print(cluster.log({task!r}))", task=failed),
            )
        process.read_past(words)

    @property
    def ending(self) -> list[str]:
        """The tasks that end by themselves: where there are servers the chief, which the others serve."""
        return [task for task in self._processes if "ps" not in self.addresses or task.startswith("chief")]

    def kill(self, task: str) -> None:
        """Kills a task with SIGKILL, and its process group; it can do nothing about it."""
        self._processes[task].kill()

    def terminate(self, task: str) -> None:
        """Sends a task SIGTERM, as a machine does that is soon taken away; the task may save first."""
        self._processes[task].terminate()

    def restart(self, task: str) -> None:
        """Starts a task again, at its address; where it still runs it is killed first."""
        self.kill(task)
        self._ended.pop(task, None)
        self._processes[task].start()

    def report(self) -> Report:
        """Returns what each task has printed so far, and how it has ended."""
        if not self._closed:
            self._ended |= {task: None for task, process in self._processes.items() if process.ended}
        return Report(tuple(process.told() for process in self._processes.values()), tuple(self._ended))

    def log(self, task: str) -> str:
        """Returns all that a task wrote, to stdout and then to stderr."""
        return "".join(self.written(task))

    def written(self, task: str) -> tuple[str, str]:
        """Returns all that a task wrote to stdout, and to stderr."""
        return self._processes[task].written()

    def _wait_until(self, holds: Callable[[], bool], limit_seconds: float, grace_seconds: float) -> None:
        """Waits until something holds or the time is over, and shows the last lines of all meanwhile."""
        until = time.monotonic() + limit_seconds
        failed = False
        with _live(
            lambda: {each.told().heading(): each.tail() for each in self._processes.values()}
        ) as refresh:
            while not holds() and time.monotonic() < until:
                time.sleep(0.05)
                if not failed and self.report().failed:
                    failed, until = True, min(until, time.monotonic() + grace_seconds)
                refresh()


class _Process:
    """The process of one task, behind a guard that ends it with this process; it can be started again."""

    def __init__(self, task: str, command: Sequence[str], own: Mapping[str, str], folder: Path) -> None:
        self.task, self._command = task, command
        inherited = {
            name: os.environ[name] for name in os.environ if not name.startswith(("TF_CONFIG", "DTENSOR"))
        }
        self.environment = {**inherited, **_OF_EVERY_TASK, **own}
        self._stdout, self._stderr = folder / f"{task}.out", folder / f"{task}.err"

    def start(self) -> None:
        """Starts it; it does not run."""
        with self._stdout.open("ab") as stdout, self._stderr.open("ab") as stderr:
            self._asked_to_end, self._read = False, len(self._lines())
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *self._command],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=self.environment,
                start_new_session=True,  # what is sent to the kernel's process group must not reach it
            )

    @property
    def ended(self) -> bool:
        """Whether its last run has ended."""
        return self._guard.poll() is not None

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, and nobody asked for its end."""
        return bool(self._guard.poll()) and not self._asked_to_end

    def kill(self) -> None:
        """Kills it, with all of its process group; returns when it is dead."""
        if not self.ended:
            self._asked_to_end = True
            self._guard.communicate()  # closes the guard's pipe

    def terminate(self) -> None:
        """Sends SIGTERM, after which its end is no failure."""
        if not self.ended:
            self._asked_to_end = True
            self._guard.terminate()

    def says(self, words: str) -> bool:
        """Returns whether it has printed a line with these words that was not read yet."""
        return any(words in line for line in self._lines()[self._read :])

    def read_past(self, words: str) -> None:
        """Takes the lines up to the first one with these words as read."""
        lines = self._lines()
        self._read = next(at for at in range(self._read, len(lines)) if words in lines[at]) + 1

    def told(self) -> Told:
        """Returns what it has printed so far, and whether and how it has ended."""
        errors = _ERROR.findall(self.written()[1]) if self.failed else []
        module, error, message = errors[-1] if errors else ("", "", "")
        message = "" if module.startswith("tensorflow.") or error == "Timeout" else message
        return Told(self.task, tuple(self._lines()), self._guard.poll(), self.failed, error, message)

    def written(self) -> tuple[str, str]:
        """Returns all that it wrote to stdout and to stderr."""
        return self._stdout.read_text(errors="replace"), self._stderr.read_text(errors="replace")

    def tail(self) -> list[str]:
        """Returns the last lines: of stdout more, of stderr few."""
        stdout, stderr = self.written()
        return stdout.splitlines()[-12:] + stderr.splitlines()[-3:]

    def _lines(self) -> list[str]:
        """Returns what it printed; a line that is not yet whole is left out."""
        return self.written()[0].rpartition("\n")[0].splitlines()


def place(
    addresses: Mapping[str, Sequence[str]], job: str, index: int, variables: str = "TF_CONFIG"
) -> dict[str, str]:
    """Returns the environment variables that tell a task its place.

    >>> place({"worker": ["host0:12345"]}, "worker", 0)
    {'TF_CONFIG': '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 0}}'}

    Source: https://www.tensorflow.org/guide/distributed_training (TF_CONFIG);
        https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/initialize_accelerator_system
    """
    if variables == "DTENSOR":
        own = {"DTENSOR_CLIENT_ID": str(index), "DTENSOR_JOB_NAME": job}
        return {**own, "DTENSOR_JOBS": ",".join(addresses[job])}
    return {"TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": job, "index": index}})}


def _hold_port(stack: contextlib.ExitStack) -> str:
    """Returns an address of this machine, whose port is bound, but not listened at, until the stack closes.

    A task can open it meanwhile, again and again, where it shares it: TensorFlow does so (SO_REUSEPORT) when
    TF_GRPC_REUSE_PORT is 1. A program of another kind gets "Address already in use".
    """
    port = stack.enter_context(socket.socket())
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind((_HOST, 0))
    return f"{_HOST}:{port.getsockname()[1]}"


@contextlib.contextmanager
def _live(tails: Callable[[], Mapping[str, Sequence[str]]]) -> Iterator[Callable[[], None]]:
    """Yields what shows the last lines of each task while a cell runs; it leaves nothing behind."""
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:  # not in a notebook
        yield lambda: None
        return
    nothing, due = {"text/plain": ""}, [0.0]
    handle: Any = import_module("IPython.display").display(nothing, raw=True, display_id=True)

    def refresh() -> None:
        if time.monotonic() >= due[0]:
            due[0] = time.monotonic() + 0.25
            columns = "".join(_column(heading, lines) for heading, lines in tails().items())
            row = f'<div style="display:flex;flex-wrap:wrap;gap:0 1.5em">{columns}</div>'
            handle.update({"text/html": row, **nothing}, raw=True)

    try:
        yield refresh
    finally:
        handle.update(nothing, raw=True)


def _column(heading: str, lines: Sequence[str]) -> str:
    name, text = html.escape(heading), html.escape("\n".join(lines))
    style = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"  # TensorFlow's lines are long
    of_task = f'<strong>{name}</strong><pre style="{style}">{text}</pre>'
    return f'<div style="flex:1 1 18em;min-width:0">{of_task}</div>'
