"""Makes the table of one TensorFlow: `python -m tools.operations.table`. It goes on where it was interrupted.

Cases run one after the other in two processes, forked from this one, which has imported TensorFlow and not
started it: so a new process takes half a second, and a case that ends its process costs no more. What comes
out silently wrong or ends the process is run again, alone in a fresh process, as the program to copy.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from course_lib.processes import died
from course_lib.specs.verdict import DEAD, WRONG
from tools.operations import cases, worker
from tools.operations.cases import Case

BUILD = Path(__file__).resolve().parents[2] / "build"
PROCESSES = 2
CHUNK = 400  # cases that a process takes at once
LIMIT_SECONDS = 60.0
MIXED_UP = "12"  # a mesh on which messages can get mixed up, also those of later cases in the process
CHECKED = (WRONG, DEAD)  # verdicts that a fresh process must confirm

Record = dict[str, Any]
Work = Callable[[Any, Callable[[Record], None]], None]
_FORK = multiprocessing.get_context("fork")


class Child:
    """A process that works on some cases, and what it told last."""

    def __init__(self, work: Work, given: Sequence[Case]) -> None:
        self.given = deque(given)
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.connection, other = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_work, args=(work, list(given), other, self.log.fileno()))
        self.process.start()
        other.close()
        self.began: str | None = None
        self.any_told = False
        self.since = time.monotonic()

    def told(self) -> Record | None:
        """Returns what came of a case, or None where one has only begun. EOFError: the process has ended."""
        record: Record = self.connection.recv()
        self.since = time.monotonic()
        if "verdict" not in record:
            self.began = record["key"]
            return None
        self.began, self.any_told = None, True
        self.given.popleft()
        return record

    def ended(self) -> Record | None:
        """Returns what the process died of, where it died within a case.

        Raises:
            RuntimeError: Python failed in it at once. Later, an operation before may be the cause: TensorFlow
                tells some errors late, and another process begins with that case.
        """
        self.process.join()
        self.log.seek(0)
        said, exitcode = self.log.read(), self.process.exitcode or 0
        self.log.close()
        if exitcode > 0 and not self.any_told:
            raise RuntimeError(said)
        if exitcode >= 0 or self.began is None:
            return None
        self.given.popleft()
        ended = f"no end within {LIMIT_SECONDS:g} s" if exitcode == -signal.SIGKILL else died(exitcode, said)
        return {"key": self.began, "verdict": DEAD, "message": ended}


def _work(work: Work, given: list[Case], connection: Connection, log: int) -> None:
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    work(given, connection.send)


def answers(work: Work, given: Iterable[Case], chunk: int = CHUNK) -> Iterator[Record]:
    """Yields what became of each case, as it comes."""
    left = deque(given)
    running: list[Child] = []
    while left or running:
        while left and len(running) < PROCESSES:
            running.append(Child(work, [left.popleft() for _time in range(min(chunk, len(left)))]))
        ready = wait([child.connection for child in running], timeout=1.0)
        for child in list(running):
            if child.connection in ready:
                try:
                    record = child.told()
                except EOFError:
                    running.remove(child)
                    record = child.ended()
                    left.extendleft(reversed(child.given))
                if record is not None:
                    yield record
            elif time.monotonic() - child.since > LIMIT_SECONDS:
                child.process.kill()


def one_program(given: list[Case], tell: Callable[[Record], None]) -> None:
    """Runs the program of the first case."""
    worker.run_program(given[0], tell)


def stored(path: Path) -> dict[str, Record]:
    """Returns the answers that a file has, by their keys; none where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {record.pop("key"): record for record in map(json.loads, lines)}


def completed(path: Path, work: Work, given: Sequence[Case], chunk: int = CHUNK) -> dict[str, Record]:
    """Returns the answers of all given cases, having run those that the file lacks and written them to it."""
    known = stored(path)
    todo = [case for case in given if case.key not in known]
    with path.open("a", encoding="utf-8") as file:
        for record in tqdm(answers(work, todo, chunk), total=len(todo), desc=path.stem, mininterval=5):
            print(json.dumps(record), file=file, flush=True)
    return stored(path)


def measure() -> Record:
    """Returns the table of the TensorFlow that runs this."""
    import tensorflow as tf

    version = tf.__version__
    every = list(cases.every_case())
    BUILD.mkdir(exist_ok=True)
    answered = BUILD / f"operations-{version}.jsonl"
    completed(answered, worker.run, [case for case in every if case.sizes == MIXED_UP], chunk=1)
    found = completed(answered, worker.run, every)
    doubtful = [case for case in every if found[case.key]["verdict"] in CHECKED]
    again = completed(BUILD / f"operations-{version}-alone.jsonl", one_program, doubtful, chunk=1)
    for key, record in again.items():
        if record["verdict"] != found[key]["verdict"]:
            found[key] |= {"alone": record["verdict"]}
    return {"tensorflow": version, **cases.packed(found)}


def main() -> None:
    """Measures and writes the table beside this file."""
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"  # two processes share the cores
    table = measure()
    path = Path(__file__).with_name(f"{table['tensorflow'].rpartition('.')[0]}.json")
    path.write_text(json.dumps(table, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print("written:", path.name, file=sys.stderr)


if __name__ == "__main__":
    main()
