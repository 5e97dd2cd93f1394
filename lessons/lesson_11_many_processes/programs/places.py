"""Which process this one is, and who the others are: read before TensorFlow reads it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping

from lessons.lesson_11_many_processes.cluster_jobs import WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task

TF_CONFIG, CLIENTS, CLIENT = "TF_CONFIG", "DTENSOR_JOBS", "DTENSOR_CLIENT_ID"
CLIENT_JOB = "DTENSOR_JOB_NAME"
ALONE = ClusterSpec({WORKER: ["localhost:1"]})


def place_of_worker(variables: Mapping[str, str]) -> Place:
    """Returns the place that TF_CONFIG, among these environment variables, names; alone if it is not set."""
    return ClusterSpec.from_tf_config(variables.get(TF_CONFIG, ALONE.tf_config(Task(WORKER))))


def place_of_client(variables: Mapping[str, str]) -> Place:
    """Returns the place of the client of DTensor's that these variables name; alone without DTENSOR_JOBS."""
    jobs = variables.get(CLIENTS, "localhost:1").split(",")
    return ClusterSpec({WORKER: jobs}).place(Task(WORKER, int(variables.get(CLIENT, "0"))))


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
