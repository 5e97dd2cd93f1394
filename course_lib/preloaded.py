"""Has imported TensorFlow, and runs programs as forks of itself, which saves them seconds.

    python -P preloaded.py ADDRESS

It starts no device and no thread of TensorFlow's, so that a fork is as good as a new process. The guard of a
program calls at the address, a Unix socket, and sends what the program is to have. It gets two
lines: the number of the process, and how it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import types
from typing import Any


def main() -> None:
    """Waits for calls; returns in no process but those of programs, when their program has ended."""
    import numpy as np
    import tensorflow  # noqa: F401 - for the forks

    request = _accept(sys.argv[1])
    np.random.seed()  # otherwise the same in each fork
    sys.argv = request["arguments"]
    sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__file__ = sys.argv[0]
    with open(sys.argv[0], "rb") as file:
        program = file.read()
    try:
        exec(compile(program, sys.argv[0], "exec"), vars(module))
    except Exception as error:
        trace = error.__traceback__
        sys.excepthook(type(error), error.with_traceback(trace and trace.tb_next), None)  # without this frame
        sys.exit(1)


def _accept(address: str) -> dict[str, Any]:
    """Returns, in a process of its own for each call, what was asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the parents of programs
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            call, _address = server.accept()
            with call:
                if os.fork() == 0:
                    return _fork(call)


def _fork(call: socket.socket) -> dict[str, Any]:
    """Returns what was asked for in a new process; here, waits for it and answers."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _one, files, _flags, _address = socket.recv_fds(call, 1, 2)
    with call.makefile() as lines:
        request: dict[str, Any] = json.loads(lines.readline())
    if pid := os.fork():
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(pid, pid)
        call.sendall(f"{pid}\n".encode())
        _pid, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):  # the guard has been killed
            call.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    for number, file in enumerate(files, start=1):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    return request


if __name__ == "__main__":
    main()
