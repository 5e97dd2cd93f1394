"""Which process this one is, and who the others are: read before TensorFlow reads it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

from lessons.lesson_11_many_processes.cluster_jobs import WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task

TF_CONFIG, CLIENTS, CLIENT = "TF_CONFIG", "DTENSOR_JOBS", "DTENSOR_CLIENT_ID"
CLIENT_JOB = "DTENSOR_JOB_NAME"
_NO_PROXY = "no_grpc_proxy"
ALONE = ClusterSpec({WORKER: ["localhost:1"]}).place(Task(WORKER))


def place_of_worker(variables: Mapping[str, str]) -> Place:
    """Returns the place that TF_CONFIG, among these environment variables, names; alone if it is not set.

    Raises:
        CourseError: TF_CONFIG is wrong.
    """
    config = variables.get(TF_CONFIG)
    return ClusterSpec.from_tf_config(config) if config else ALONE


def place_of_client(variables: Mapping[str, str]) -> Place:
    """Returns the place of the client of DTensor's that these variables name; alone without DTENSOR_JOBS.

    Raises:
        CourseError: an address is none, or there is no client of this number.
    """
    if not variables.get(CLIENTS):
        return ALONE
    cluster = ClusterSpec({WORKER: variables[CLIENTS].split(",")})
    return cluster.place(Task(WORKER, int(variables.get(CLIENT, "0"))))


def ask_no_proxy_in(cluster: ClusterSpec) -> None:
    """Has gRPC reach the processes of a cluster without a proxy; what stood in the environment stays.

    gRPC reads `no_grpc_proxy`, and `no_proxy` where that is not set.

    Source: https://github.com/grpc/grpc/blob/master/doc/environment_variables.md
    """
    kept = os.environ.get(_NO_PROXY) or os.environ.get("no_proxy", "")
    hosts = [address.partition(":")[0] for _job, of_job in cluster.jobs for address in of_job]
    os.environ[_NO_PROXY] = ",".join(filter(None, [kept, *hosts]))


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
