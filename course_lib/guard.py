"""Runs a command, and ends it when standard input ends: with whoever holds the other end of that pipe.

    python guard.py COMMAND [ARGUMENT ...]

Nothing is ever written into the pipe. When its owner closes it, or dies of whatever cause, the command is
killed with all of its process group. SIGTERM is passed on to them. The guard ends as the command did, and
what that leaves behind in its group ends with it. It runs by itself, with nothing but Python's library.
"""

from __future__ import annotations

import contextlib
import os
import signal
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
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, process_group=0)
    groups.append(command.pid)
    threading.Thread(target=_kill_at_end_of_input, args=[command.pid], daemon=True).start()
    status = command.wait()
    _send(command.pid, signal.SIGKILL)
    if status < 0:
        _end_by(-status)
    sys.exit(status)


def _kill_at_end_of_input(group: int) -> None:
    os.read(0, 1)
    _send(group, signal.SIGKILL)


def _send(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter: macOS, where all have ended
        os.killpg(group, number)


def _end_by(number: int) -> None:
    """Ends this process by the signal that ended the command, so that its status is the command's."""
    with contextlib.suppress(OSError):  # nobody can have SIGKILL do anything else
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
