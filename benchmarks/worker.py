"""A process that measures whenever it is asked, so that what needs processes of its own takes turns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

Ask = Callable[[str], float]


@contextmanager
def worker(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Ask]:
    """Gives a function that sends a running process the name of a measurement and returns its seconds.

    Args:
        command: a program that calls `serve`, or does the same.
        environment: what it gets beside this process's environment.
    """
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    questions, answers = process.stdin, process.stdout
    assert questions is not None
    assert answers is not None

    def ask(what: str) -> float:
        print(what, file=questions, flush=True)
        return float(answers.readline())  # empty, and so an error, if the process has ended

    with process:  # leaving closes its stdin, and so ends it
        yield ask


def serve(make: Callable[[str], Callable[[], float]]) -> None:
    """Answers each name on stdin with the seconds of that measurement, made once and warmed up once.

    Args:
        make: returns the measurement of a name.
    """
    made: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        what = line.strip()
        if what not in made:
            made[what] = make(what)
            made[what]()
        print(made[what](), flush=True)
