"""Clusters: the processes that train together, where each is reached, and what tells each its place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself
from lessons.lesson_11_many_processes import tf_config
from lessons.lesson_11_many_processes.cluster_jobs import CHIEF, EVALUATOR, PS, WORKER, checked


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


@dataclass(frozen=True, init=False, repr=False)
class ClusterSpec(DrawsItself):
    """The tasks of a training and their addresses, the same for every task. It draws itself.

    >>> cluster = ClusterSpec({"worker": ["host0:12345", "host1:12345"]})
    >>> cluster.tf_config("worker 1")
    '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 1}}'

    Attributes:
        jobs: for each job its addresses; "chief", "worker", "ps", in this order.
        evaluator: whether an evaluator reads the checkpoints beside the training.

    Raises:
        CourseError: no task, an unknown job, what is no address, one address twice, two chiefs, an evaluator
            among the jobs, or parameter servers without a chief or a worker.

    Source: https://www.tensorflow.org/guide/distributed_training (TF_CONFIG); what TensorFlow itself does
        with what is refused here: docs/decisions/cluster.md.
    """

    drawn_by = "lessons.lesson_11_many_processes.cluster_picture"

    jobs: tuple[tuple[str, tuple[str, ...]], ...]
    evaluator: bool

    def __init__(self, jobs: Mapping[str, Iterable[str]], *, evaluator: bool = False) -> None:
        object.__setattr__(self, "jobs", tuple(checked(jobs).items()))
        object.__setattr__(self, "evaluator", bool(evaluator))

    @classmethod
    def from_tf_config(cls, text: str | None) -> Place:
        """Returns the cluster and the task that a TF_CONFIG names.

        Args:
            text: what `os.environ.get("TF_CONFIG")` returns.

        Raises:
            CourseError: TF_CONFIG is not set, no JSON, lacks a part, or names an impossible cluster or task.
        """
        jobs, job, index = tf_config.parts(text)
        cluster = cls(jobs, evaluator=job == EVALUATOR)
        return cluster.place(Task(job, index))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task: the chief, the workers, the servers, the evaluator."""
        named = [Task(job, index) for job, addresses in self.jobs for index in range(len(addresses))]
        return (*named, *([Task(EVALUATOR)] if self.evaluator else []))

    @property
    def has_servers(self) -> bool:
        """Whether it is one of parameter servers, which the chief coordinates."""
        return self.num_tasks(PS) > 0

    @property
    def saver(self) -> Task:
        """The task that writes the checkpoints that count, and summaries: the chief, or else worker 0."""
        return Task(CHIEF if self.num_tasks(CHIEF) else WORKER)

    @property
    def ending(self) -> tuple[Task, ...]:
        """The tasks that end by themselves: where there are servers the chief, which the others serve."""
        kept = (CHIEF,) if self.has_servers else (CHIEF, WORKER)
        return tuple(task for task in self.tasks if task.job in kept)

    def num_tasks(self, job: str) -> int:
        """Returns how many tasks a job has."""
        return len(dict(self.jobs).get(job, ())) if job != EVALUATOR else int(self.evaluator)

    def task(self, named: Task | str) -> Task:
        """Returns the task of a name such as "worker 1".

        Raises:
            CourseError: the cluster has none of that name.
        """
        for task in self.tasks:
            if named in (task, str(task)):
                return task
        raise CourseError(
            _("The cluster has no task {task!r}.", task=str(named)),
            allowed=_(", ").join(map(str, self.tasks)),
            cure=_("Name one of these; in each job tasks are counted from 0."),
        )

    def address(self, named: Task | str) -> str:
        """Returns where a task is reached; the evaluator has no address."""
        task = self.task(named)
        return dict(self.jobs)[task.job][task.index]

    def tf_config(self, named: Task | str) -> str:
        """Returns TF_CONFIG for a task: one line of JSON."""
        task = self.task(named)
        return json.dumps({"cluster": dict(self.jobs), "task": {"type": task.job, "index": task.index}})

    def dtensor_variables(self, named: Task | str) -> dict[str, str]:
        """Returns the environment variables that tell a worker its place as a client of DTensor.

        Source: https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/initialize_accelerator_system
        """
        task = self.task(named)
        return {
            "DTENSOR_CLIENT_ID": str(task.index),
            "DTENSOR_JOBS": ",".join(dict(self.jobs)[WORKER]),
            "DTENSOR_JOB_NAME": WORKER,
        }

    def place(self, named: Task | str) -> Place:
        """Returns the cluster as seen from a task."""
        return Place(self, self.task(named))

    def __repr__(self) -> str:
        jobs = {job: list(addresses) for job, addresses in self.jobs}
        return f"ClusterSpec({jobs}{', evaluator=True' if self.evaluator else ''})"


@dataclass(frozen=True)
class Place(DrawsItself):
    """A cluster as seen from one of its tasks. It draws itself, with the task marked.

    Attributes:
        cluster: the same for every task.
        task: this one.
    """

    drawn_by = "lessons.lesson_11_many_processes.cluster_picture"

    cluster: ClusterSpec
    task: Task

    @property
    def tf_config(self) -> str:
        """TF_CONFIG for this task."""
        return self.cluster.tf_config(self.task)

    @property
    def saves(self) -> bool:
        """Whether this task writes the checkpoints that count."""
        return self.task == self.cluster.saver

    @property
    def others(self) -> dict[str, str]:
        """The addresses of all other tasks that have one, by their names."""
        tasks = (task for task in self.cluster.tasks if task not in (self.task, Task(EVALUATOR)))
        return {str(task): self.cluster.address(task) for task in tasks}
