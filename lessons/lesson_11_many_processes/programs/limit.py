"""One limit for TensorFlow's start, which waits for other processes an hour, or without end, in silence.

While it waits it lets no other thread of Python run, nor a handler of a signal. So another process looks
after it, this module: it ends when its input does, which is at the end of the start or of the process.

    python -m lessons.lesson_11_many_processes.programs.limit SECONDS PROCESS LANGUAGE NAMES_AND_ADDRESSES
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping

from course_lib import i18n
from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.programs.lines import tell


@contextlib.contextmanager
def within(seconds: float, others: Mapping[str, str]) -> Iterator[None]:
    """Kills this process where the block takes longer, and names who is not there.

    Args:
        seconds: how long it may take.
        others: the addresses of those for which TensorFlow waits; where there are none, nothing is bounded.
    """
    if not others:
        yield
        return
    named = [str(seconds), str(os.getpid()), i18n.language(), json.dumps(dict(others))]
    command = [sys.executable, "-m", __name__, *named]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as watcher:
        try:
            yield
        finally:
            watcher.communicate()  # closes its input


def opened(address: str) -> bool:
    """Returns whether a program listens at an address now; where there is no such host, none does."""
    host, _colon, port = address.partition(":")
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, int(port)), timeout=2.0) as caller,
    ):
        # Where nobody listens the system may call from this very port: then a socket has reached itself.
        return bool(caller.getsockname() != caller.getpeername())
    return False


def main() -> None:
    """Waits for the end of its input; where the time is over before, kills the process that it watches."""
    limit, process, language, others = sys.argv[1:]
    seconds = float(limit)
    if select.select([sys.stdin], [], [], seconds)[0]:
        return
    i18n.set_language(language)
    try:
        addresses: Mapping[str, str] = json.loads(others)
        missing = [name for name, address in addresses.items() if not opened(address)]
        allowed = _("all processes that the cluster names, started within {seconds:g} s", seconds=seconds)
        cure = _("Look at the output of those; see that their addresses are right, or wait longer: --wait.")
        names = _(", ").join(missing or addresses)
        tell(CourseError(_("Not there in time: {names}.", names=names), allowed=allowed, cure=cure))
    finally:
        os.kill(int(process), signal.SIGKILL)


if __name__ == "__main__":
    main()
