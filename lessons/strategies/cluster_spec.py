"""Clusters as the builder of TF_CONFIG has them: tasks, addresses, and which task one is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"


@dataclass(frozen=True)
class Place:
    """A cluster as seen from one of its tasks.

    Attributes:
        jobs: for each job its addresses, the same for every task; "chief", "worker", "ps", in this order.
        task: this one, such as "worker 1".
        evaluator: whether an evaluator reads the checkpoints beside the training; it has no address.
    """

    jobs: Mapping[str, Sequence[str]]
    task: str
    evaluator: bool = False

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task: the chief, the workers, the servers, the evaluator."""
        return (*self.addresses, *([f"{EVALUATOR} 0"] if self.evaluator else []))

    @property
    def addresses(self) -> dict[str, str]:
        """Where each task is reached; the evaluator has no address."""
        return {f"{job} {at}": each for job, of_job in self.jobs.items() for at, each in enumerate(of_job)}

    @property
    def saver(self) -> str:
        """The task that writes the checkpoints that count, and summaries: the chief, or else worker 0."""
        return f"{CHIEF if CHIEF in self.jobs else WORKER} 0"

    @property
    def tf_config(self) -> str:
        """TF_CONFIG for this task: one line of JSON."""
        job, index = self.task.split()
        return place(self.jobs, job, int(index))["TF_CONFIG"]


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
