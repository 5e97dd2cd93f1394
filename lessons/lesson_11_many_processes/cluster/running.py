"""Clusters of local processes: started, waited for, killed and restarted, and ended in every case."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster.live import live_logs
from lessons.lesson_11_many_processes.cluster.process import Process, Written
from lessons.lesson_11_many_processes.cluster.report import MARKER, Report
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task

LIMIT_SECONDS = 180.0
GRACE_SECONDS = 30.0  # for what the others have to say once one has failed

Program = str | os.PathLike[str] | Sequence[object]
Variables = Literal["TF_CONFIG", "DTENSOR"]

_HOST = "127.0.0.1"
# So that a task can open the port that is held for it, again after a restart too, and asks no proxy for the
# others; what gRPC has to say of peers that end helps nobody. Each task would take the whole memory of a GPU
# of this machine, and NCCL refuses two participants on one.
_OF_EVERY_TASK = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_GRPC_REUSE_PORT": "1",
    "no_grpc_proxy": _HOST,
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONUNBUFFERED": "1",
}


class Cluster:
    """Processes of one program on this machine, each told its place in the cluster.

    with Cluster(["train.py", "--steps", "20"], {"worker": 2}) as cluster:
        report = cluster.wait(120)
    report

    At the end of the block every process has ended, with what it started: also after an exception or an
    interrupt, and when this process itself is killed.

    Args:
        program: what stands behind `python` on the command line: a script, or "-m" and a module, and its
            arguments.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`.
        others: by the names of tasks what these run instead: for drills with a worker that is not like the
            others.
        variables: which variables tell a process its place: "TF_CONFIG", or "DTENSOR" for those of DTensor.
        environment: what else is set for each. Tasks see no GPU unless CUDA_VISIBLE_DEVICES stands here: each
            would take the whole memory of the one that all see.
        python: the interpreter.

    Attributes:
        spec: the tasks and their addresses.

    Raises:
        CourseError: there can be no such cluster.
    """

    def __init__(
        self,
        program: Program,
        tasks: Mapping[str, int],
        *,
        others: Mapping[str, Program] | None = None,
        variables: Variables = "TF_CONFIG",
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self._ports = contextlib.ExitStack()
        self.spec = ClusterSpec(
            {job: [_hold_port(self._ports) for _task in range(count)] for job, count in tasks.items()}
        )
        self._folder = tempfile.TemporaryDirectory(prefix="cluster-")
        self._commands = {
            str(task): [python, *_words((others or {}).get(str(task), program))] for task in self.spec.tasks
        }
        self._environments = {
            str(task): _environment(self.spec, task, variables) | dict(environment or {})
            for task in self.spec.tasks
        }
        self._processes: dict[str, Process] = {}
        self._ended: list[str] = []
        self._closed = False

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        for task, command in self._commands.items():
            self._processes[task] = Process(task, command, self._environments[task], folder)
        return self

    def __exit__(self, *_raised: object) -> None:
        self._look()
        self._closed = True
        for process in self._processes.values():
            process.kill()
        self._ports.close()

    def wait(
        self, limit_seconds: float = LIMIT_SECONDS, *tasks: str, grace_seconds: float = GRACE_SECONDS
    ) -> Report:
        """Returns what all said and how they ended, once those have ended that end by themselves.

        Where one has failed, the others have some time left to say so; then it returns without their end.
        Shows the last lines of each meanwhile.

        Args:
            limit_seconds: the longest that it may take.
            tasks: whose end to wait for; by default of all that end by themselves: where there are parameter
                servers the chief, else the chief and the workers.
            grace_seconds: how long to wait for the others once one has failed.

        Raises:
            CourseError: the time is over; it names who has not ended.
        """
        awaited = [str(self.spec.task(task)) for task in tasks or self.spec.ending]

        def left() -> list[str]:
            return [task for task in awaited if task not in self._ended]

        self._wait_until(lambda: not left(), limit_seconds, grace_seconds)
        report = self.report()
        if left() and not report.failed:
            raise CourseError(
                _(
                    "{tasks} had not ended after {limit:g} s.",
                    tasks=_(", ").join(left()),
                    limit=limit_seconds,
                ),
                allowed=_("an end of {tasks} within the limit", tasks=_(", ").join(awaited)),
                cure=_("Read what it wrote: print(cluster.log({task!r}))", task=left()[0]),
            )
        return report

    def wait_for(self, task: str, words: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Waits until a task says a line of its own with these words, in its present run.

        Where another one fails, it waits for 30 s more: the task may wait for that one.

        Args:
            task: such as "worker 1".
            words: such as "step 5".
            limit_seconds: the longest that it may take.

        Raises:
            CourseError: the task ended without saying it, another one failed, or the time is over.
        """
        process = self._process(task)
        self._wait_until(
            lambda: process.has_said(words) or process.status is not None, limit_seconds, GRACE_SECONDS
        )
        if process.has_said(words):
            return
        raise CourseError(
            _("{task} did not say {words!r}.", task=task, words=words),
            allowed=_("words in a line that begins with {marker!r}", marker=MARKER),
            cure=_("Read what it wrote: print(cluster.log({task!r}))", task=[*self.report().failed, task][0]),
        )

    def kill(self, task: str, *, after: str = "") -> None:
        """Kills a task with SIGKILL, and its process group; it can do nothing about it.

        Args:
            task: such as "worker 1".
            after: words of a line after which it is killed.

        Raises:
            CourseError: the task never said these words.
        """
        if after:
            self.wait_for(task, after)
        self._process(task).kill()
        self._look()

    def terminate(self, task: str) -> None:
        """Sends a task SIGTERM, as a machine does that is soon taken away; the task may save first."""
        self._process(task).terminate()

    def restart(self, task: str) -> None:
        """Starts a task again, at its address; where it still runs it is killed first."""
        self.kill(task)
        self._ended.remove(task)
        self._process(task).start()

    def report(self) -> Report:
        """Returns what each task has said so far, and how it has ended."""
        self._look()
        return Report(tuple(process.told() for process in self._processes.values()), tuple(self._ended))

    def log(self, task: str) -> Written:
        """Returns all that a task wrote, to stdout and to stderr."""
        return self._process(task).written()

    def _process(self, task: str) -> Process:
        return self._processes[str(self.spec.task(task))]

    def _look(self) -> None:
        """Notes who has ended, in the order in which they did; who is ended by closing does not count."""
        for task, process in self._processes.items():
            if not self._closed and process.status is not None and task not in self._ended:
                self._ended.append(task)

    def _wait_until(self, holds: Callable[[], bool], limit_seconds: float, grace_seconds: float) -> None:
        """Waits until something holds or the time is over, and shows the logs meanwhile."""
        until = time.monotonic() + limit_seconds
        failed = False
        with live_logs(self._tails) as refresh:
            while not holds() and time.monotonic() < until:
                time.sleep(0.1)
                self._look()
                if not failed and any(process.failed for process in self._processes.values()):
                    failed, until = True, min(until, time.monotonic() + grace_seconds)
                refresh()

    def _tails(self) -> dict[str, list[str]]:
        return {process.told().heading(): process.tail() for process in self._processes.values()}


def _words(program: Program) -> list[str]:
    """Returns what stands behind `python` on the command line, word by word."""
    return [os.fspath(program)] if isinstance(program, str | os.PathLike) else list(map(str, program))


def _environment(cluster: ClusterSpec, task: Task, variables: Variables) -> dict[str, str]:
    """Returns the environment variables of a task."""
    place = {"TF_CONFIG": cluster.tf_config(task)}
    if variables == "DTENSOR":
        place = cluster.dtensor_variables(task)
    inherited = {
        name: os.environ[name] for name in os.environ if not name.startswith(("TF_CONFIG", "DTENSOR"))
    }
    return {**inherited, **_OF_EVERY_TASK, **place}


def _hold_port(stack: contextlib.ExitStack) -> str:
    """Returns an address of this machine, whose port is bound, but not listened at, until the stack closes.

    A task can open it meanwhile, again and again, where it shares it: TensorFlow does so (SO_REUSEPORT) when
    TF_GRPC_REUSE_PORT is 1. A program of another kind gets "Address already in use".
    """
    port = stack.enter_context(socket.socket())
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind((_HOST, 0))
    return f"{_HOST}:{port.getsockname()[1]}"
