"""Clusters: the processes that train together, where each is reached, and what tells each its place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself
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


@dataclass(frozen=True)
class ClusterSpec:
    """The tasks of a training and their addresses, the same for every task.

    >>> cluster = ClusterSpec({"worker": ["host0:12345", "host1:12345"]})
    >>> cluster.tf_config("worker 1")
    '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 1}}'

    Attributes:
        jobs: for each job its addresses; "chief", "worker", "ps", in this order.
        evaluator: whether an evaluator reads the checkpoints beside the training.

    Raises:
        CourseError: an unknown job, what is no address, one address twice, two chiefs, an evaluator among the
            jobs, or parameter servers without a chief or a worker.

    Source: https://www.tensorflow.org/guide/distributed_training (TF_CONFIG); what TensorFlow itself does
        with what is refused here: docs/decisions/cluster.md.
    """

    jobs: Mapping[str, Iterable[str]]
    evaluator: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", checked(self.jobs))

    @classmethod
    def from_tf_config(cls, text: str) -> Place:
        """Returns the cluster and the task that a TF_CONFIG names; an index in quotes counts as its number.

        Args:
            text: what `os.environ["TF_CONFIG"]` is.

        Raises:
            CourseError: TF_CONFIG is no JSON, or names an impossible cluster or task.
        """
        try:
            config = json.loads(text)
        except json.JSONDecodeError as error:
            where = _("line {line}, column {column}", line=error.lineno, column=error.colno)
            cure = _("Write it with json.dumps, which sets every bracket and quote.")
            if text.startswith("{'"):
                cure = _("This is how Python writes a dictionary. Write it with json.dumps instead of str.")
            raise CourseError(
                _("TF_CONFIG is no JSON ({where}): {text}", where=where, text=text),
                allowed=_(
                    'JSON with "cluster", the same for every task, and "task", with "type" and "index"'
                ),
                cure=cure,
            ) from error
        job, index = config["task"]["type"], int(config["task"]["index"])
        return cls(config["cluster"], evaluator=job == EVALUATOR).place(Task(job, index))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task: the chief, the workers, the servers, the evaluator."""
        named = [Task(job, index) for job in self.jobs for index in range(self.num_tasks(job))]
        return (*named, *([Task(EVALUATOR)] if self.evaluator else []))

    @property
    def addresses(self) -> dict[Task, str]:
        """Where each task is reached; the evaluator has no address."""
        return {Task(job, at): each for job, of_job in self.jobs.items() for at, each in enumerate(of_job)}

    @property
    def has_servers(self) -> bool:
        """Whether it is one of parameter servers, which the chief coordinates."""
        return PS in self.jobs

    @property
    def saver(self) -> Task:
        """The task that writes the checkpoints that count, and summaries: the chief, or else worker 0."""
        return Task(CHIEF if CHIEF in self.jobs else WORKER)

    @property
    def ending(self) -> tuple[Task, ...]:
        """The tasks that end by themselves: where there are servers the chief, which the others serve."""
        kept = (CHIEF,) if self.has_servers else (CHIEF, WORKER)
        return tuple(task for task in self.tasks if task.job in kept)

    def num_tasks(self, job: str) -> int:
        """Returns how many tasks a job of the cluster has."""
        return len(list(self.jobs.get(job, ())))

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

    def tf_config(self, named: Task | str) -> str:
        """Returns TF_CONFIG for a task: one line of JSON."""
        task = self.task(named)
        return json.dumps({"cluster": self.jobs, "task": {"type": task.job, "index": task.index}})

    def dtensor_variables(self, named: Task | str) -> dict[str, str]:
        """Returns the environment variables that tell a worker its place as a client of DTensor.

        Source: https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/initialize_accelerator_system
        """
        return {
            "DTENSOR_CLIENT_ID": str(self.task(named).index),
            "DTENSOR_JOBS": ",".join(self.jobs[WORKER]),
            "DTENSOR_JOB_NAME": WORKER,
        }

    def place(self, named: Task | str) -> Place:
        """Returns the cluster as seen from a task."""
        return Place(self, self.task(named))


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
        return {str(task): each for task, each in self.cluster.addresses.items() if task != self.task}
