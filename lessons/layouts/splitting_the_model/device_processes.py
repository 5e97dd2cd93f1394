"""Starts a program as the devices of one mesh, each in a process of its own, and reads how they ended."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from typing import IO

from course_lib import processes
from course_lib.errors import CourseError
from course_lib.i18n import _

LIMIT_SECONDS = 180.0
# Where memory is limited, oneDNN may wait for ten seconds, or abort.
_WITHOUT_ONEDNN = {"TF_ENABLE_ONEDNN_OPTS": "0"}


def run_devices(program: str, count: int) -> list[str]:
    """Returns for each of `count` processes what it printed, and how it ended if that was an error.

    Each gets `count` as its argument. At the end of the call all have ended.

    Raises:
        CourseError: they still ran after three minutes.
    """
    with contextlib.ExitStack() as held:
        addresses = [processes.hold_port(held) for _device in range(count)]
        started = []
        for number in range(count):
            own = {
                **_WITHOUT_ONEDNN,
                "DTENSOR_CLIENT_ID": str(number),
                "DTENSOR_JOBS": ",".join(addresses),
                "DTENSOR_JOB_NAME": "worker",
            }
            out, log = (held.enter_context(tempfile.TemporaryFile()) for _stream in range(2))
            variables = {**os.environ, **processes.OF_EACH, **own}
            guarded = processes.guarded([sys.executable, program, str(count)], out, log, variables)
            process = held.enter_context(guarded)
            started.append((process, out, log))
        until = time.monotonic() + LIMIT_SECONDS
        while any(process.poll() is None for process, _out, _log in started):
            time.sleep(0.1)
            if time.monotonic() > until:
                raise CourseError(_("The process still ran after {seconds:g} s.", seconds=LIMIT_SECONDS))
        return [_told(process.returncode, out, log) for process, out, log in started]


def _told(status: int, out: IO[bytes], log: IO[bytes]) -> str:
    """Returns what a process printed, and below it what ended it."""
    texts = []
    for file in (out, log):
        file.seek(0)
        texts.append(file.read().decode(errors="replace"))
    printed, logged = texts
    return printed.rstrip() if status == 0 else printed + processes.died(status, logged)
