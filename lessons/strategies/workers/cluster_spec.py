"""Clusters as the builder of TF_CONFIG has them: tasks, addresses, and which task one is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"


@dataclass(frozen=True)
class Task:
    """A process of a cluster.

    >>> str(Task("worker", 1))
    'worker 1'

    Attributes:
        job: "chief", "worker", "ps" or "evaluator".
        index: which of that job's processes it is, counted from 0.
    """

    job: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.job} {self.index}"


@dataclass(frozen=True)
class Place:
    """A cluster as seen from one of its tasks.

    Attributes:
        jobs: for each job its addresses, the same for every task; "chief", "worker", "ps", in this order.
        task: this one.
        evaluator: whether an evaluator reads the checkpoints beside the training; it has no address.
    """

    jobs: Mapping[str, Sequence[str]]
    task: Task
    evaluator: bool = False

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task: the chief, the workers, the servers, the evaluator."""
        return (*self.addresses, *([Task(EVALUATOR)] if self.evaluator else []))

    @property
    def addresses(self) -> dict[Task, str]:
        """Where each task is reached; the evaluator has no address."""
        return {Task(job, at): each for job, of_job in self.jobs.items() for at, each in enumerate(of_job)}

    @property
    def has_servers(self) -> bool:
        """Whether it is a cluster of parameter servers, which the chief coordinates."""
        return PS in self.jobs

    @property
    def saver(self) -> Task:
        """The task that writes the checkpoints that count, and summaries: the chief, or else worker 0."""
        return Task(CHIEF if CHIEF in self.jobs else WORKER)

    @property
    def tf_config(self) -> str:
        """TF_CONFIG for this task: one line of JSON."""
        return place(self.jobs, self.task.job, self.task.index)["TF_CONFIG"]


def place(
    addresses: Mapping[str, Sequence[str]], job: str, index: int, variables: str = "TF_CONFIG"
) -> dict[str, str]:
    """Returns the environment variables that tell a task its place.

    >>> place({"worker": ["host0:12345"]}, "worker", 0)
    {'TF_CONFIG': '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 0}}'}
    >>> place({"client": ["host0:12345"]}, "client", 0, "DTENSOR")
    {'DTENSOR_CLIENT_ID': '0', 'DTENSOR_JOB_NAME': 'client', 'DTENSOR_JOBS': 'host0:12345'}

    Source: https://www.tensorflow.org/guide/distributed_training (TF_CONFIG);
        https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/initialize_accelerator_system
    """
    if variables == "DTENSOR":
        own = {"DTENSOR_CLIENT_ID": str(index), "DTENSOR_JOB_NAME": job}
        return {**own, "DTENSOR_JOBS": ",".join(addresses[job])}
    return {"TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": job, "index": index}})}
