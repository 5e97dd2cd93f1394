"""Mistakes in TF_CONFIG: how they look, what the course says of each, and what TensorFlow does with it."""

from __future__ import annotations

import json
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster_jobs import CHIEF, EVALUATOR, WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec

ONE_ADDRESS_TWICE, INDEX_FROM_ONE, NO_PORT, TWO_CHIEFS, EVALUATOR_INSIDE, NO_JSON, PORT_TAKEN = MISTAKES = (
    "one address twice",
    "index counted from 1",
    "no port",
    "two chiefs",
    "evaluator inside",
    "no JSON",
    "port taken",
)
NO_CHIEF = "no chief"  # of parameter servers

_NO_SERVER = "UnknownError: Could not start gRPC server"
_NO_CONTEXT = "InvalidArgumentError: EagerService:CreateContext failed."
_TWO_CHIEFS = "ValueError: There must be at most one 'chief' job."


def mistaken(cluster: ClusterSpec, mistake: str) -> str:
    """Returns TF_CONFIG of the last worker with a mistake in it; what is taken is its port.

    >>> mistaken(ClusterSpec({"worker": ["host0:12345"]}), "index counted from 1")
    '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 1}}'
    """
    last = cluster.num_tasks(WORKER) - 1
    config: dict[str, Any] = json.loads(cluster.tf_config(f"{WORKER} {last}"))
    jobs, workers = config["cluster"], config["cluster"][WORKER]
    if mistake == ONE_ADDRESS_TWICE:
        workers[last:] = [workers[0]] if last else [workers[0]] * 2
    elif mistake == INDEX_FROM_ONE:
        config["task"]["index"] = last + 1
    elif mistake == NO_PORT:
        workers[last] = workers[last].partition(":")[0]
    elif mistake == TWO_CHIEFS:
        jobs[CHIEF] = [*jobs.get(CHIEF, ["host8:12345"]), "host9:12345"]
    elif mistake == EVALUATOR_INSIDE:
        jobs[EVALUATOR] = ["host9:12345"]
    return str(config) if mistake == NO_JSON else json.dumps(config)


def port_taken(task: str, address: str) -> CourseError:
    """Returns the error of a task whose port another program has."""
    return CourseError(
        _("The port of {task}, {address}, is taken by another program.", task=task, address=address),
        allowed=_("a free port"),
        cure=_("End that program, or give the task another port; TF_CONFIG must name it for every task."),
    )


def in_tensorflow(cluster: ClusterSpec, mistake: str) -> str:
    """Returns what TensorFlow 2.21 does with a mistake: measured, with all tasks on one machine.

    Args:
        cluster: the one that was meant.
        mistake: one of `MISTAKES`, or `NO_CHIEF`.
    """
    count, servers = cluster.num_tasks(WORKER), cluster.has_servers
    host = cluster.address(f"{WORKER} {count - 1}").partition(":")[0]
    of_index = (
        f'InternalError: Task {count} was not defined in job "worker"'
        if servers
        else f"ValueError: The `task_id` {count} exceeds the maximum id of worker."
    )
    raised = {
        INDEX_FROM_ONE: of_index,
        NO_PORT: f'InvalidArgumentError: Could not parse port for local server from "{host}".',
        NO_JSON: "JSONDecodeError: Expecting property name enclosed in double quotes",
        PORT_TAKEN: _NO_SERVER,
        **({} if servers else {TWO_CHIEFS: _TWO_CHIEFS}),
    }
    if mistake in raised:
        return _("TensorFlow 2.21 raises {error}", error=raised[mistake])
    return {
        ONE_ADDRESS_TWICE: _of_one_address(servers),
        TWO_CHIEFS: _(
            "TensorFlow 2.21: workers and servers start and wait; a chief raises {error}", error=_TWO_CHIEFS
        ),
        EVALUATOR_INSIDE: _("TensorFlow 2.21 accepts it in silence."),
        NO_CHIEF: _("TensorFlow 2.21 accepts it in silence, and workers and servers wait without end."),
    }[mistake]


def _of_one_address(servers: bool) -> str:
    """Returns what comes of two workers at one address: who is not found is waited for, or asked twice."""
    if servers:
        return _(
            "TensorFlow 2.21 does not look for it: the second of them raises {error}, the chief {of_chief},"
            " and the others wait without end.",
            error=_NO_SERVER,
            of_chief=_NO_CONTEXT,
        )
    return _(
        "TensorFlow 2.21 does not look for it: the second of them raises {error}, and the others wait for an"
        " hour.",
        error=_NO_SERVER,
    )
