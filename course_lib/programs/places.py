"""Which process this one is, and who the others are: what TF_CONFIG says, read before TensorFlow reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _

TRAINING_JOBS = ("chief", "worker")
VARIABLE = "TF_CONFIG"
JOBS, CLIENT = "DTENSOR_JOBS", "DTENSOR_CLIENT_ID"
_EXAMPLE = '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True)
class Place:
    """Where a process stands in its cluster.

    >>> place = Place({"worker": ("host0:1", "host1:1")}, "worker", 1)
    >>> place.name, place.is_chief, list(place.addresses())
    ('worker 1', False, ['worker 0', 'worker 1'])

    Attributes:
        cluster: the addresses of the tasks of each job; empty where this process is alone.
        job: the job of this process.
        index: which of the job's tasks it is.
    """

    cluster: Mapping[str, tuple[str, ...]]
    job: str = "worker"
    index: int = 0

    @property
    def name(self) -> str:
        """The name of this process, such as "worker 1"."""
        return f"{self.job} {self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether it also does what one of them has to do; without a chief worker 0 does."""
        return self.index == 0 and (self.job == "chief" or "chief" not in self.cluster)

    def addresses(self, *jobs: str) -> dict[str, str]:
        """Returns the address of each task of these jobs, of all jobs if none is named, by its name."""
        ordered = jobs or sorted(self.cluster, key=lambda job: (job != "chief", job))
        return {
            f"{job} {index}": address
            for job in ordered
            for index, address in enumerate(self.cluster.get(job, ()))
        }

    def others(self) -> list[str]:
        """Returns the names of all other processes."""
        return [name for name in self.addresses() if name != self.name]

    def require_jobs(self, *jobs: str) -> None:
        """Checks that the cluster has no other jobs than these.

        Raises:
            CourseError: it has another.
        """
        for job in self.cluster:
            problem = _("The cluster in {variable} has the job {job!r}.", variable=VARIABLE, job=job)
            one_of(job, jobs, problem, cure=_("Leave it out, or start the program that uses it."))


def place_of(variables: Mapping[str, str]) -> Place:
    """Returns where TF_CONFIG, among these environment variables, puts this process; alone if it is not set.

    Raises:
        CourseError: it is no JSON, lacks something, names an address twice, or a task that there is not.

    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver
    """
    if not variables.get(VARIABLE):
        return Place({})
    try:
        config = json.loads(variables[VARIABLE])
        cluster = {str(job): _addresses(given) for job, given in config["cluster"].items()}
        place = Place(cluster, str(config["task"]["type"]), int(config["task"]["index"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            _("{variable} cannot be read: {reason}.", variable=VARIABLE, reason=_reason(error)),
            allowed=_("JSON with the addresses of all tasks, and which of them this process is"),
            cure=_("Write for example {example}.", example=_EXAMPLE),
        ) from error
    _require_apart(place, VARIABLE)
    _require_there(place, VARIABLE)
    return place


def client_of(variables: Mapping[str, str], num_devices: int) -> Place:
    """Returns which client of DTensor's these environment variables make this process; alone without them.

    Args:
        variables: DTENSOR_JOBS, DTENSOR_CLIENT_ID and DTENSOR_JOB_NAME are looked at.
        num_devices: of the whole mesh; each client has as many of them.

    Raises:
        CourseError: one of them cannot be read, names an address twice, or a client that there is not; or the
            devices do not divide among the clients.
    """
    if not variables.get(JOBS):
        return Place({})
    job, client = variables.get("DTENSOR_JOB_NAME", "worker"), variables.get(CLIENT, "0")
    try:
        place = Place({job: _addresses(variables[JOBS].split(","))}, job, int(client))
    except ValueError as error:
        raise CourseError(
            _("{variable} cannot be read: {reason}.", variable=f"{JOBS}, {CLIENT}", reason=error),
            allowed=_("the addresses of all clients, with commas between them, and the number of this one"),
            cure=_("Write for example {example}.", example=f"{JOBS}=host0:12345,host1:12345 {CLIENT}=0"),
        ) from error
    _require_apart(place, JOBS)
    _require_there(place, CLIENT)
    if num_devices % len(place.addresses()):
        raise CourseError(
            _(
                "{count} devices do not divide among {clients} clients.",
                count=num_devices,
                clients=len(place.addresses()),
            ),
            allowed=_("numbers of clients by which {count} divides", count=num_devices),
            cure=_("Name fewer or more addresses in {variable}.", variable=JOBS),
        )
    return place


def host_and_port(address: str) -> tuple[str, int]:
    """Returns the two parts of an address.

    >>> host_and_port("host0:12345")
    ('host0', 12345)

    Raises:
        ValueError: it has no port.
    """
    host, _colon, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(address)
    return host.strip("[]"), int(port)


def _addresses(given: Any) -> tuple[str, ...]:
    addresses = tuple(given) if isinstance(given, list) else (given,)
    for address in addresses:
        host_and_port(address)
    return addresses


def _require_apart(place: Place, variable: str) -> None:
    named: dict[str, str] = {}
    for name, address in place.addresses().items():
        if address in named:
            raise CourseError(
                _(
                    "In {variable}, {first} and {second} have one address.",
                    variable=variable,
                    first=named[address],
                    second=name,
                ),
                allowed=_("an address of its own for each task"),
                cure=_("On one machine, give each task another port."),
            )
        named[address] = name


def _require_there(place: Place, variable: str) -> None:
    problem = _(
        "{variable} makes this process {name}, which its cluster lacks.", variable=variable, name=place.name
    )
    cure = _("Tasks are numbered from 0: correct the task, or add its address to the cluster.")
    one_of(place.name, place.addresses(), problem, cure=cure)


def _reason(error: Exception) -> str:
    return _("it lacks {part}", part=error) if isinstance(error, KeyError) else str(error)
