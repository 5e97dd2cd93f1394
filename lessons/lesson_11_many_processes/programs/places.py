"""Which process this one is, and who the others are: read before TensorFlow reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lessons.lesson_11_many_processes.cluster_jobs import WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task

TF_CONFIG, CLIENTS, CLIENT = "TF_CONFIG", "DTENSOR_JOBS", "DTENSOR_CLIENT_ID"
CLIENT_JOB = "DTENSOR_JOB_NAME"


@dataclass(frozen=True)
class Peers:
    """The processes that train together, as one of them sees it.

    Attributes:
        name: of this process, such as "worker 1".
        addresses: of all processes, by their names; none where this one is alone.
        saves: whether this process writes the checkpoints that count.
    """

    name: str
    addresses: Mapping[str, str]
    saves: bool

    @property
    def others(self) -> dict[str, str]:
        """The addresses of all other processes, by their names."""
        return {name: address for name, address in self.addresses.items() if name != self.name}

    @property
    def count(self) -> int:
        """How many processes train together."""
        return len(self.others) + 1


ALONE = Peers(str(Task(WORKER)), {}, saves=True)


def peers_of(place: Place) -> Peers:
    """Returns the peers of a place in a cluster."""
    cluster = place.cluster
    addresses = {str(task): cluster.address(task) for task in cluster.tasks}
    return Peers(str(place.task), addresses, place.saves)


def workers_of(variables: Mapping[str, str]) -> Peers:
    """Returns the workers that TF_CONFIG, among these environment variables, names; alone if it is not set.

    Raises:
        CourseError: TF_CONFIG is wrong.
    """
    config = variables.get(TF_CONFIG)
    return peers_of(ClusterSpec.from_tf_config(config)) if config else ALONE


def clients_of(variables: Mapping[str, str]) -> Peers:
    """Returns the clients of DTensor's that these environment variables name; alone without DTENSOR_JOBS.

    Raises:
        CourseError: an address is none, or there is no client of this number.
    """
    if not variables.get(CLIENTS):
        return ALONE
    cluster = ClusterSpec({WORKER: variables[CLIENTS].split(",")})
    return peers_of(cluster.place(Task(WORKER, int(variables.get(CLIENT, "0")))))
