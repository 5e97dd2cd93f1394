"""Ports of this machine for the tasks of a cluster, held so that no other program gets them."""

from __future__ import annotations

import contextlib
import socket

from lessons.lesson_11_many_processes.addresses import host_and_port

_HOST = "127.0.0.1"


def hold(stack: contextlib.ExitStack) -> str:
    """Returns an address of this machine, whose port is bound, but not listened at, until the stack closes.

    A task can open it meanwhile, again and again, where it shares it: TensorFlow does so (SO_REUSEPORT) when
    TF_GRPC_REUSE_PORT is 1. A program of another kind gets "Address already in use".
    """
    port = stack.enter_context(socket.socket())
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind((_HOST, 0))
    return f"{_HOST}:{port.getsockname()[1]}"


def opened(address: str) -> bool:
    """Returns whether a program listens at an address now; where there is no such host, none does."""
    with (
        contextlib.suppress(OSError, UnicodeError),  # the latter: "a..b", a name that no host can have
        socket.create_connection(host_and_port(address), timeout=2.0) as caller,
    ):
        # Where nobody listens the system may call from this very port: then a socket has reached itself.
        return bool(caller.getsockname() != caller.getpeername())
    return False
