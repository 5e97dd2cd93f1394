"""The guard of a cluster: a process that starts all others, and ends them when who asked for it is gone.

It is a program of its own, with nothing but Python's library, and reads one order a line from its standard
input. When that ends, for whatever reason (the cluster was closed, its owner was killed), it kills every
process of the cluster with all that these started, and only then ends itself. Why it does not trust one
means alone: docs/decisions/cluster.md.

Usage: python guard.py MARK (JSON lines in, JSON lines out)
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

MARK = "COURSE_CLUSTER_TASK"  # a variable that all processes of a cluster inherit: which cluster and task
NOT_STARTED = 127  # the exit status of what could not be started, as a shell has it
_POLL_SECONDS = 0.05
_MOST_SECONDS_TO_END = 30.0
_DIES_WITH_PARENT, _ADOPTS_ORPHANS = 1, 36  # Linux: PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def kill(group: int, mark: str) -> None:
    """Kills a process group, and those that left it: all whose variable `MARK` begins with `mark`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter: macOS, where all have ended
        os.killpg(group, signal.SIGKILL)
    kill_marked(mark)


def kill_marked(mark: str) -> None:
    """Kills all processes whose variable `MARK` begins with `mark`, on Linux; elsewhere none is found."""
    for _round in range(40):  # those that others started meanwhile too
        left = list(_marked(mark))
        if not left:
            return
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_POLL_SECONDS / 5)


def _marked(mark: str) -> Iterator[int]:
    """Yields the ids of the living processes with a mark, on Linux; elsewhere none."""
    sought = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if any(each.startswith(sought) for each in file.read().split(b"\0")):
                    yield int(name)


class _Guard:
    """Starts tasks, tells of their ends, and kills all of them at its own end."""

    def __init__(self) -> None:
        self._owner = os.getppid()
        self._unread = b""
        self._running: dict[str, tuple[int, str]] = {}  # for each task its process group and its mark

    def run(self) -> None:
        """Follows orders until there is nobody left to give them."""
        while os.getppid() == self._owner:  # a process forked off the owner may keep the pipe open
            readable, _writable, _failed = select.select([0], [], [], _POLL_SECONDS)
            if readable:
                read = os.read(0, 65_536)
                if not read:
                    return
                *orders, self._unread = (self._unread + read).split(b"\n")
                for order in orders:
                    self._follow(json.loads(order))
            self._tell_ends()

    def end(self) -> None:
        """Kills all that is left of the cluster, until nothing is."""
        until = time.monotonic() + _MOST_SECONDS_TO_END
        while self._tell_ends() and time.monotonic() < until:
            for group, mark in self._running.values():
                kill(group, mark)
            for orphan in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            time.sleep(_POLL_SECONDS / 5)

    def _follow(self, order: dict[str, Any]) -> None:
        task = order["task"]
        if order["do"] == "start":
            self._start(task, order)
        elif task in self._running:  # else it ended while the order was on its way
            group, mark = self._running[task]
            if order["do"] == "kill":
                kill(group, mark)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, order["signal"])

    def _start(self, task: str, order: dict[str, Any]) -> None:
        guard = os.getpid()
        process_id = os.fork()
        if process_id == 0:
            _become(order, guard)
        with contextlib.suppress(OSError):  # both sides do it: whoever comes first
            os.setpgid(process_id, process_id)
        self._running[task] = process_id, order["environment"][MARK]
        _tell({"told": "started", "task": task, "group": process_id})

    def _tell_ends(self) -> bool:
        """Tells which tasks have ended, and kills what they left; returns whether any process is left."""
        while True:
            try:
                process_id, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if process_id == 0:
                return True
            for task, (group, mark) in list(self._running.items()):
                if group == process_id:
                    kill(group, mark)
                    del self._running[task]
                    _tell({"told": "ended", "task": task, "status": os.waitstatus_to_exitcode(status)})


def _children() -> list[int]:
    """Returns the ids of this process's children, orphans that it adopted too, on Linux; elsewhere none."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(each) for each in file.read().split()]
    return []


def _become(order: dict[str, Any], guard: int) -> None:
    """Turns this process, just forked off the guard, into a task."""
    try:
        os.setpgid(0, 0)
        _prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != guard:  # it died before the line above
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        appends = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in enumerate(("stdout", "stderr"), 1):
            os.dup2(os.open(order[name], appends, 0o600), descriptor)
        os.chdir(order["folder"])
        os.execve(order["command"][0], order["command"], order["environment"])
    except BaseException as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _tell(event: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        os.write(1, json.dumps(event).encode() + b"\n")


def _watch(mark: str) -> int:
    """Starts a process that kills all marked ones once the guard itself is gone, also if it was killed.

    Returns:
        What must stay open as long as the guard lives.
    """
    watched, held = os.pipe()
    child = os.fork()
    if child:
        os.close(watched)
        os.waitpid(child, 0)
        return held
    if os.fork() == 0:  # an orphan at once: it is none of the guard's children, which the guard kills
        with contextlib.suppress(OSError):
            os.setsid()
            os.closerange(0, watched)
            os.closerange(watched + 1, held + 1)
            os.read(watched, 1)
            kill_marked(mark)
    os._exit(0)


def main() -> None:
    """Guards until the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the owner to hear
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    _held = _watch(sys.argv[1])
    _prctl(_ADOPTS_ORPHANS, 1)
    guard = _Guard()
    try:
        guard.run()
    finally:
        guard.end()


if __name__ == "__main__":
    main()
