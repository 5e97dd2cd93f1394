"""Runs cases, some at a time, each in a process that may die and within a limit of time.

A case is a name and a function that returns what it found. Its process is a fork of this one, so modules
that are imported here are there at once. The function may run a program (`found_by`), also of another
environment. Whatever else a process does is an answer too: an error, a crash or no end.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from course_lib import messages, processes

ERROR, CRASH, TIMEOUT = FAILURES = ("error", "crash", "timeout")
SPOILED = "spoiled"  # in what a case found: its process is of no use to other cases
BUILD = Path(__file__).resolve().parents[2] / "build"
NUM_PROCESSES = 2
MOST_TOGETHER = 400  # cases that one process takes
_FORK = multiprocessing.get_context("fork")

Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What is run.

    Attributes:
        name: what no other case is called.
        run: returns what it found, as JSON has it.
        limit_seconds: after how long it is ended.
        alone: whether it has a process of its own, in which no other case runs.
    """

    name: str
    run: Callable[[], Record]
    limit_seconds: float = 60.0
    alone: bool = False


def completed(cases: Sequence[Case], name: str, version: str) -> dict[str, Record]:
    """Returns what became of all cases of a table by their names, having run those that its journal lacks.

    Each is written into the journal, a file of `BUILD`, when it has ended: what was stopped goes on there.
    """
    journal = BUILD / f"{name}-{version}.jsonl"
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a+", encoding="utf-8") as file:
        file.seek(0)
        records: dict[str, Record] = dict(map(json.loads, file))
        missing = [case for case in cases if case.name not in records]
        for ended, record in tqdm(run(missing), total=len(missing), desc=name, mininterval=5):
            print(json.dumps([ended, record]), file=file, flush=True)
            records[ended] = record
    return records


def run(cases: Sequence[Case]) -> Iterator[tuple[str, Record]]:
    """Yields the name of each case and what became of it, as they end: what it found, or how it failed."""
    left, workers = deque(cases), list[_Worker]()
    try:
        while left or workers:
            while left and len(workers) < NUM_PROCESSES:
                workers.append(_Worker(_together(left)))
            ready = wait([worker.connection for worker in workers], timeout=1.0)
            for worker in list(workers):
                if worker.connection in ready:
                    yield from worker.told()
                elif worker.is_late():
                    worker.kill()
                if worker.has_ended:
                    workers.remove(worker)
                    left.extendleft(reversed(worker.left))
    finally:
        for worker in workers:
            worker.kill()


def _together(left: deque[Case]) -> list[Case]:
    """Takes from what is left the cases of one process."""
    taken = [left.popleft()]
    while left and len(taken) < MOST_TOGETHER and not taken[0].alone and not left[0].alone:
        taken.append(left.popleft())
    return taken


class _Worker:
    """A process that takes cases one after the other. What it has not done is left."""

    def __init__(self, cases: list[Case]) -> None:
        self.left = deque(cases)
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.connection, other = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=self._work, args=(other.send, os.getpid()))
        self.process.start()
        other.close()
        self.has_told = self.has_ended = False
        self.since = time.monotonic()

    def _work(self, tell: Callable[[Record], None], parent: int) -> None:
        os.setpgid(0, 0)  # what a case starts is ended with it
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        for number in (1, 2):
            os.dup2(self.log.fileno(), number)
        sys.stdout = sys.stderr = self.log
        for case in self.left:
            record = case.run()
            tell(json.loads(json.dumps(record)))
            if SPOILED in record:
                return

    def told(self) -> Iterator[tuple[str, Record]]:
        """Yields what became of a case, where the process has told it or has ended within it."""
        try:
            record = self.connection.recv()
            record.pop(SPOILED, None)
            self.has_told = True
        except EOFError:
            self.has_ended = True
            self.process.join()
            self.kill()
            record = self._failure()
        if record is not None:
            yield self.left.popleft().name, record
        self.since = time.monotonic()

    def _failure(self) -> Record | None:
        """Returns what became of the case in which the process ended; None where it was between two.

        An exception may be that of a case before, since TensorFlow tells some late: another process, which
        begins with this case, decides.
        """
        status = self.process.exitcode or 0
        if not self.left or (status >= 0 and self.has_told):
            return None
        if self.is_late():
            return {"verdict": TIMEOUT, "message": f"no end within {self.left[0].limit_seconds:g} s"}
        self.log.seek(0)
        return outcome_of(status, "", self.log.read())

    def is_late(self) -> bool:
        """Returns whether the case in hand is over its limit."""
        return time.monotonic() - self.since > (self.left[0].limit_seconds if self.left else 0.0)

    def kill(self) -> None:
        """Ends the process with all that it started."""
        try:
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()


def _end_with(parent: int) -> None:
    """Ends this process, with all that it started, when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


def found_by(
    program: Path, *arguments: str, python: str = sys.executable, environment: Mapping[str, str] | None = None
) -> Record:
    """Returns what a program printed on its last line, as JSON, or how it failed.

    Args:
        program: a Python file that anyone can run by hand.
        arguments: what it gets on the command line.
        python: the interpreter, which may be that of another environment.
        environment: what is set for it beside this process's own variables.
    """
    done = processes.run([python, str(program), *arguments], seconds=None, environment=environment)
    return outcome_of(done.returncode, done.stdout, done.stderr)


def outcome_of(status: int, printed: str, log: str) -> Record:
    """Returns what a process printed on its last line that ended so, or how it failed."""
    if status < 0:
        return {"verdict": CRASH, "message": processes.died(status, log)}
    *_notes, last = printed.splitlines() or [""]
    if status == 0 and last.startswith("{"):
        found: Record = json.loads(last)
        return found
    return {"verdict": ERROR, "message": messages.ending(log) if status else "it printed no finding"}
