"""Programs in processes of their own, run to the end or to a limit of time: none leaves a process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from course_lib import guard, messages
from course_lib.i18n import _

LIMIT_SECONDS = 120.0


@dataclass(frozen=True, repr=False)
class Ended:
    """What a program printed and how it ended. It shows itself.

    Attributes:
        printed: what it wrote to stdout.
        status: its exit status as a shell shows it: 128 and more for a signal.
        ended: how it ended, in the reader's language.
    """

    printed: str
    status: int
    ended: str

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self.printed.rstrip("\n"), f"→ {self.ended}"]))


def run_program(path: str | Path, *arguments: object, seconds: float = LIMIT_SECONDS) -> Ended:
    """Runs a Python program in a process of its own and returns what it printed and how it ended.

    What it writes to stderr is not shown, but for the last line of an exception. At its end, and at the end
    of this process, every process of its group ends too.

    Args:
        path: the file, such as one that a cell with `%%writefile` wrote.
        arguments: what it gets on the command line.
        seconds: after how long it is ended.
    """
    try:
        done = run([sys.executable, str(path), *map(str, arguments)], seconds=seconds)
    except subprocess.TimeoutExpired as late:
        how = _("ended at the limit, seconds={seconds:g}: it was still running", seconds=seconds)
        return Ended(str(late.output), _as_in_a_shell(-signal.SIGKILL), how)
    return Ended(done.stdout, _as_in_a_shell(done.returncode), _ending(done.returncode, done.stderr))


def run(
    command: Sequence[str], *, seconds: float | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Returns what a command left, as `subprocess.run` does; what it started ends with it.

    Args:
        command: the program and its arguments.
        seconds: after how long it is ended; None for no limit.
        environment: what is set for it beside this process's own variables.

    Raises:
        subprocess.TimeoutExpired: it was ended; with what it had written until then.
    """
    own = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}  # who is killed has printed
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        with guarded(command, out, log, own) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            is_late = process.poll() is None  # then the end of the block ends it: it closes the guard's pipe
        for file in (out, log):
            file.seek(0)
        printed, logged = (file.read().decode(errors="replace") for file in (out, log))
    if is_late:
        raise subprocess.TimeoutExpired(command, seconds or 0.0, printed, logged)
    return subprocess.CompletedProcess(command, process.returncode, printed, logged)


def guarded(
    command: Sequence[str], out: IO[bytes], log: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a command that ends with this process; until then, closing its standard input kills it.

    Args:
        command: the program and its arguments.
        out: where its stdout goes.
        log: where its stderr goes.
        environment: all its environment variables.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, *command],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=log,
        env=environment,
        start_new_session=True,  # what is sent to the kernel's process group must not reach it
    )


def died(status: int, log: str) -> str:
    """Returns what ended a process: what TensorFlow checked in vain, the signal, or the exception."""
    checks = [line.partition("] ")[2] for line in log.splitlines() if "Check failed" in line]
    if status >= 0:
        return messages.plain(messages.ending(log)) if status else ""
    return checks[-1] if checks else signal.Signals(-status).name


def _ending(status: int, log: str) -> str:
    shown, why = _as_in_a_shell(status), died(status, log)
    how = _("ended with exit status {status}", status=shown)
    if status < 0:
        name = signal.Signals(-status).name
        how = _(
            "ended by {signal}, signal {number} (exit status {status})",
            signal=name,
            number=-status,
            status=shown,
        )
        why = why.removeprefix(name)
    return _("{how}: {why}", how=how, why=why) if why else how


def _as_in_a_shell(status: int) -> int:
    return 128 - status if status < 0 else status
