"""Runs a command, and ends it when standard input ends: with whoever holds the other end of that pipe.

    python guard.py COMMAND [ARGUMENT ...]
    python guard.py --fork ADDRESS PROGRAM [ARGUMENT ...]

The second line has a Python program run by the process that preloaded.py is, and listens at the address.
Nothing is ever written into the pipe. When its owner closes it, or dies of whatever cause, the command is
killed with all of its process group. SIGTERM is passed on to them. The guard ends as the command did, and
what that leaves behind in its group ends with it. It runs by itself, with nothing but Python's library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading


def main() -> None:
    """Runs the command to its end, or to the end of standard input."""
    groups: list[int] = []  # the command's, once it runs

    def pass_on(number: int, _frame: object) -> None:
        for group in groups:
            _send(group, number)

    signal.signal(signal.SIGTERM, pass_on)
    command: subprocess.Popen[bytes] | _Forked
    if sys.argv[1] == "--fork":
        command = _Forked(sys.argv[2], sys.argv[3:])
    else:
        command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, process_group=0)
    groups.append(command.pid)
    threading.Thread(target=_kill_at_end_of_input, args=[command.pid], daemon=True).start()
    status = command.wait()
    _send(command.pid, signal.SIGKILL)
    if status < 0:  # ended by a signal: so does this process, that its status is the command's
        with contextlib.suppress(OSError):  # nobody can have SIGKILL do anything else
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


class _Forked:
    """A program that another process has forked, with this one's variables, folder and output."""

    def __init__(self, address: str, arguments: list[str]) -> None:
        self._call = socket.socket(socket.AF_UNIX)
        self._call.connect(address)
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(self._call, [b"\n"], [1, 2])
        self._call.sendall(f"{json.dumps(request)}\n".encode())
        self._answers = self._call.makefile()
        self.pid = int(self._answers.readline())

    def wait(self) -> int:
        """Returns how it ended, as `subprocess.Popen.wait` does."""
        return int(self._answers.readline() or -signal.SIGKILL)  # nothing: the process that forks was killed


def _kill_at_end_of_input(group: int) -> None:
    os.read(0, 1)
    _send(group, signal.SIGKILL)


def _send(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter: macOS, where all have ended
        os.killpg(group, number)


if __name__ == "__main__":
    main()
