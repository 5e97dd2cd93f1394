"""Programs in processes of their own, run to the end or to a limit of time: none leaves a process behind."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from course_lib import guard, messages, preloaded
from course_lib.errors import CourseError
from course_lib.i18n import _

LIMIT_SECONDS = 60.0

HOST = "127.0.0.1"
# What each of several processes on this machine gets: the port that is held for it, also after a restart; no
# proxy on the way to the others; few threads, since all share this machine; no GPU, of which each would take
# the whole memory. TensorFlow's handler of preemptions asks a server of Google's whether it runs there: the
# question goes nowhere.
OF_EACH = {
    "CUDA_VISIBLE_DEVICES": "",
    "GCE_METADATA_IP": f"{HOST}:9",
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONUNBUFFERED": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_GRPC_REUSE_PORT": "1",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
    "no_grpc_proxy": HOST,
}


def run(
    command: Sequence[str],
    *,
    seconds: float | None = LIMIT_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Returns what a command left, as `subprocess.run` does; what it started ends with it.

    Args:
        command: the program and its arguments.
        seconds: after how long it is ended; None for no limit.
        environment: what is set for it beside this process's own variables.

    Raises:
        CourseError: it was ended.
    """
    own = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}  # who is killed has printed
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        with guarded(command, out, log, own) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:  # the end of the block ends it: it closes the guard's pipe
                late = _("The process still ran after {seconds:g} s.", seconds=seconds)
                raise CourseError(late) from None
        for file in (out, log):
            file.seek(0)
        printed, logged = (file.read().decode(errors="replace") for file in (out, log))
    return subprocess.CompletedProcess(command, process.returncode, printed, logged)


def guarded(
    command: Sequence[str], out: IO[bytes] | int, log: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a command that ends with this process; until then, closing its standard input kills it.

    It has the variables of `environment` alone. `forks()` runs `["--fork", its address, program, ...]`.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, *command],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=log,
        env=environment,
        start_new_session=True,  # what is sent to the kernel's process group must not reach it
    )


@functools.cache
def forks() -> str:
    """Returns where a process listens that runs programs as forks (preloaded.py); "" where none does.

    It is started once, and ends with this process. Forks of what TensorFlow loads are safe on Linux alone.
    """
    if sys.platform != "linux":
        return ""
    folder = tempfile.TemporaryDirectory(prefix="forks-")
    command = [sys.executable, "-P", preloaded.__file__, f"{folder.name}/calls"]
    with tempfile.TemporaryFile() as log:
        process = guarded(command, subprocess.PIPE, log, {**os.environ, **OF_EACH})
    assert process.stdout

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return command[-1] if process.stdout.readline() else ""


def died(status: int, log: str) -> str:
    """Returns what ended a process: what TensorFlow checked in vain, the signal, or the exception."""
    checks = [line.partition("] ")[2] for line in log.splitlines() if "Check failed" in line]
    if status > 0:
        return messages.plain(messages.ending(log))
    return checks[-1] if checks else signal.Signals(-status).name


def hold_port(stack: contextlib.ExitStack) -> str:
    """Returns an address of this machine, whose port is bound, but not listened at, until the stack closes.

    A task can open it meanwhile, again and again, where it shares it: TensorFlow does so (SO_REUSEPORT) when
    TF_GRPC_REUSE_PORT is 1. A program of another kind gets "Address already in use".
    """
    port = stack.enter_context(socket.socket())
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind((HOST, 0))
    return f"{HOST}:{port.getsockname()[1]}"
