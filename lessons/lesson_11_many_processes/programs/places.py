"""Which process this one is, and who the others are: read before TensorFlow reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from lessons.lesson_11_many_processes.cluster_jobs import CHIEF, EVALUATOR, PS, WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task

TF_CONFIG, CLIENTS, CLIENT, CLIENT_JOB = (
    "TF_CONFIG",
    "DTENSOR_JOBS",
    "DTENSOR_CLIENT_ID",
    "DTENSOR_JOB_NAME",
)


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
    def others(self) -> list[str]:
        """The names of all other processes."""
        return [name for name in self.addresses if name != self.name]

    @property
    def count(self) -> int:
        """How many processes train together."""
        return len(self.others) + 1


ALONE = Peers(str(Task(WORKER)), {}, saves=True)


def workers_of(variables: Mapping[str, str]) -> Peers:
    """Returns the workers that TF_CONFIG, among these environment variables, names; alone if it is not set.

    Raises:
        CourseError: TF_CONFIG is wrong, or has tasks that do not train together with the others.
    """
    if not variables.get(TF_CONFIG):
        return ALONE
    place = ClusterSpec.from_tf_config(variables[TF_CONFIG])
    for job, is_there in {PS: place.cluster.has_servers, EVALUATOR: place.task.job == EVALUATOR}.items():
        if is_there:
            raise CourseError(
                _("The cluster has the job {job!r}, which this program has no use for.", job=job),
                allowed=_("the jobs {jobs}", jobs=_(", ").join((CHIEF, WORKER))),
                cure=_("Leave it out, or start the program that uses it."),
            )
    return _peers_of(place)


def server_place_of(variables: Mapping[str, str]) -> Place:
    """Returns the place that TF_CONFIG gives to this process in a cluster with parameter servers.

    Raises:
        CourseError: TF_CONFIG is wrong or not set, or has no servers, or this process is the evaluator.
    """
    place = ClusterSpec.from_tf_config(variables.get(TF_CONFIG))
    if not place.cluster.has_servers or place.task.job == EVALUATOR:
        raise CourseError(
            _("{place} has no part in a training with parameter servers.", place=place.task),
            allowed=_("one chief, which coordinates, and at least one worker and one ps"),
            cure=_("Give the address of each, and start this program for each."),
        )
    return place


def clients_of(variables: Mapping[str, str], num_devices: int) -> Peers:
    """Returns the clients of DTensor's that these environment variables name; alone without DTENSOR_JOBS.

    Args:
        variables: DTENSOR_JOBS, DTENSOR_CLIENT_ID and DTENSOR_JOB_NAME are looked at.
        num_devices: of the whole mesh; each client has as many of them.

    Raises:
        CourseError: one of them is wrong, or the devices do not divide among the clients.
    """
    if not variables.get(CLIENTS):
        return ALONE
    cluster = ClusterSpec({WORKER: variables[CLIENTS].split(",")})
    number = variables.get(CLIENT, "0")
    if not number.isdecimal():
        raise CourseError(
            _("{variable} is {value!r}.", variable=CLIENT, value=number),
            allowed=_("whole numbers from {least} to {most}", least=0, most=len(cluster.tasks) - 1),
            cure=_("Give the number of this client among the addresses in {variable}.", variable=CLIENTS),
        )
    if num_devices % len(cluster.tasks):
        raise CourseError(
            ngettext(
                "A mesh of {size} does not divide among {count} client.",
                "A mesh of {size} does not divide among {count} clients.",
                len(cluster.tasks),
                size=num_devices,
            ),
            allowed=_("numbers of clients by which {size} divides", size=num_devices),
            cure=_("Name fewer or more addresses in {variable}.", variable=CLIENTS),
        )
    return _peers_of(cluster.place(Task(WORKER, int(number))), variables.get(CLIENT_JOB) or WORKER)


def addresses_of(cluster: ClusterSpec, *jobs: str) -> dict[str, str]:
    """Returns the address of each task of these jobs, by its name; the chief first."""
    return {str(task): cluster.address(task) for task in cluster.tasks if task.job in jobs}


def _peers_of(place: Place, job: str = "") -> Peers:
    """Returns the peers of a place; clients of DTensor's may call their job as they like."""
    names = {str(task): str(task) if not job else f"{job} {task.index}" for task in place.cluster.tasks}
    addresses = addresses_of(place.cluster, CHIEF, WORKER)
    return Peers(names[str(place.task)], {names[name]: each for name, each in addresses.items()}, place.saves)
