"""Calls between the processes of a cluster, before TensorFlow starts: a line of JSON there, and one back."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
from collections.abc import Mapping
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.addresses import host_and_port
from lessons.lesson_11_many_processes.cluster.ports import opened

READ_SECONDS = 2.0
_MOST_BYTES = 2**16


def listen(name: str, address: str) -> socket.socket:
    """Returns a socket at the port of an address, on all interfaces, by IPv4 and IPv6, as TensorFlow has it.

    Raises:
        CourseError: the port is taken, or not allowed.
    """
    port = host_and_port(address)[1]
    both = socket.has_dualstack_ipv6()  # who calls by IPv4 is heard by the same socket
    family = socket.AF_INET6 if both else socket.AF_INET
    shared = os.environ.get("TF_GRPC_REUSE_PORT") == "1"  # of TensorFlow's: who starts processes may hold it
    try:
        return socket.create_server(("", port), family=family, dualstack_ipv6=both, reuse_port=shared)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise _not_had(name) from error


def require_free(name: str, address: str) -> None:
    """Checks that this process can have a port, and that nobody is there yet, here or on another machine.

    Raises:
        CourseError: it cannot, or somebody is.
    """
    if opened(address):
        raise _not_had(name)
    listen(name, address).close()


def write(to: socket.socket, said: Mapping[str, Any]) -> None:
    """Says something, as a line of JSON."""
    to.sendall(json.dumps(said).encode() + b"\n")


def read(caller: socket.socket, seconds: float = READ_SECONDS) -> dict[str, Any]:
    """Returns what was said, a line of JSON.

    Raises:
        ValueError: it was something else.
        TimeoutError: nothing was said in time.
    """
    caller.settimeout(seconds)
    with caller.makefile("rb", buffering=0) as stream:  # no more than the line: another may follow
        said = json.loads(stream.readline(_MOST_BYTES))
    if not isinstance(said, dict):
        raise ValueError(said)
    return said


def hung_up(caller: socket.socket) -> bool:
    """Returns whether the other end of a connection, which has nothing more to say, is closed."""
    with contextlib.suppress(OSError):
        return bool(select.select([caller], [], [], 0)[0]) and not caller.recv(1, socket.MSG_PEEK)
    return True


def _not_had(name: str) -> CourseError:
    return CourseError(
        _("The port of {name} cannot be had: another program has it, or it is not allowed.", name=name),
        allowed=_("a port that is free on this machine"),
        cure=_("End what uses it, perhaps an earlier run, or choose another port, the same for all."),
    )
