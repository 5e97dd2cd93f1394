"""Cases: programs that each run in a process of their own, within a time limit, and say what they found.

A case is a script and what it is asked. The script prints what it found as JSON, on its last line. Whatever
else it does is an answer too: an error, a crash or no end. So a table of what works can be made by running
all of it, also where a case would take the process down with it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib import processes
from course_lib.messages import ending

ANSWERED, ERROR, CRASH, TIMEOUT = "answered", "error", "crash", "timeout"
LIMIT_SECONDS = 180.0


@dataclass(frozen=True)
class Case:
    """A script and what it is asked.

    Attributes:
        script: a Python file that anyone can run by hand.
        arguments: what it gets on the command line.
        python: the interpreter, which may be that of another environment.
        environment: what is set for it beside this process's own variables.
    """

    script: Path
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        status: `ANSWERED`, `ERROR` (an exception), `CRASH` (a signal) or `TIMEOUT`.
        found: what the script printed on its last line; empty unless it answered.
        message: the exception's type and text, or the signal's name; empty if it answered.
    """

    status: str
    found: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""


def run(case: Case, limit_seconds: float = LIMIT_SECONDS) -> Outcome:
    """Returns what became of a case. A script that does not end is stopped, with all that it started."""
    command = [case.python, str(case.script), *case.arguments]
    try:
        done = processes.run(command, seconds=limit_seconds, environment=case.environment)
    except subprocess.TimeoutExpired:
        return Outcome(TIMEOUT, message=f"no end within {limit_seconds:g} s")
    return outcome_of(done.returncode, done.stdout, done.stderr)


def outcome_of(exit_status: int, stdout: str, stderr: str) -> Outcome:
    """Returns what became of a process that ended so, and wrote this."""
    if exit_status < 0:
        return Outcome(CRASH, message=signal.Signals(-exit_status).name)
    if exit_status:
        return Outcome(ERROR, message=ending(stderr))
    *_notes, last = stdout.splitlines() or [""]
    if not last.startswith("{"):
        return Outcome(ERROR, message="it printed no finding")
    return Outcome(ANSWERED, json.loads(last))
