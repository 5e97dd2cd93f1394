"""Ports of this machine for the tasks of a cluster, held so that no other program gets them."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Mapping

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
from lessons.lesson_11_many_processes.addresses import host_and_port
from lessons.lesson_11_many_processes.cluster_jobs import EVALUATOR
from lessons.lesson_11_many_processes.cluster_mistakes import port_taken
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec

HOST = "127.0.0.1"
MOST_TASKS = 32  # of a job, on one machine
_CALL_SECONDS = 2.0


class HeldPorts:
    """Ports that stay bound, but do not listen, until they are released.

    A task can open its port meanwhile, again and again, where it shares it: TensorFlow does so
    (SO_REUSEPORT) when TF_GRPC_REUSE_PORT is 1. A program of another kind gets "Address already in use".
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def of(self, tasks: Mapping[str, int] | ClusterSpec) -> ClusterSpec:
        """Returns a cluster on this machine, all of whose ports are held.

        Args:
            tasks: how many of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`, which get free ports;
                or the cluster with its addresses.

        Raises:
            CourseError: there can be no such cluster, or a port of it is taken or not of this machine.
        """
        if not isinstance(tasks, ClusterSpec):
            return self._free(counted(tasks))
        for job, addresses in tasks.jobs:
            for index, address in enumerate(addresses):
                self._hold_address(address, f"{job} {index}")
        return tasks

    def release(self) -> None:
        """Lets go of all ports."""
        while self._sockets:
            self._sockets.pop().close()

    def _free(self, counts: Mapping[str, int]) -> ClusterSpec:
        jobs = {
            job: [f"{HOST}:{self._hold(HOST, 0)}" for _task in range(count)]
            for job, count in counts.items()
            if job != EVALUATOR
        }
        return ClusterSpec(jobs, evaluator=EVALUATOR in counts)

    def _hold_address(self, address: str, task: str) -> None:
        host, port = host_and_port(address)
        try:
            # First without sharing: with it, a port that others of this user share would be got too.
            with contextlib.closing(_socket(host)) as alone:
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind((host, port))
            self._hold(host, port)
        except OSError as error:
            raise _not_held(address, task, error) from error

    def _hold(self, host: str, port: int) -> int:
        held = _socket(host)
        self._sockets.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
        return int(held.getsockname()[1])


def opened(address: str) -> bool:
    """Returns whether a program listens at an address now; where there is no such host, none does."""
    with contextlib.suppress(OSError):
        call(address).close()
        return True
    return False


def call(address: str) -> socket.socket:
    """Returns a connection with the program that listens at an address.

    Raises:
        OSError: nobody listens there. That a socket may then be connected with itself, where the system has
            given it this very port to call from, is no answer.
    """
    try:
        made = socket.create_connection(host_and_port(address), timeout=_CALL_SECONDS)
    except UnicodeError as error:  # as of "a..b", a name that no host can have
        raise ConnectionRefusedError from error
    if made.getsockname() == made.getpeername():
        made.close()
        raise ConnectionRefusedError
    return made


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how many tasks each job has.

    Raises:
        CourseError: it is no number of tasks, or there is more than one evaluator.
    """
    if not isinstance(counts, Mapping):
        raise CourseError(
            _("{counts!r} are no tasks of a cluster.", counts=counts),
            allowed=_("for each job the number of its tasks, or a ClusterSpec"),
            cure=_("Write for example {example}.", example='{"worker": 2}'),
        )
    return {
        job: whole_number(
            count,
            _("The job {job!r} has {count!r} tasks.", job=job, count=count),
            least=1,
            most=1 if job == EVALUATOR else MOST_TASKS,
            cure=_("Write for example {example}.", example='{"worker": 2}'),
        )
        for job, count in counts.items()
    }


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)


def _not_held(address: str, task: str, error: OSError) -> CourseError:
    if error.errno == errno.EADDRINUSE:
        return port_taken(task, address)
    return CourseError(
        _(
            "The port of {task}, {address}, cannot be had: {reason}.",
            task=task,
            address=address,
            reason=error,
        ),
        allowed=_("a free port of this machine, from 1024 up"),
        cure=_("Give it an address such as {example}, or only the number of tasks.", example=f"{HOST}:12345"),
    )
