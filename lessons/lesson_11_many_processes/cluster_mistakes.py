"""Mistakes in TF_CONFIG: how they look, what the course says of each, and what TensorFlow does with it."""

from __future__ import annotations

import json
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster_jobs import CHIEF, EVALUATOR, WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task

NO_JSON, PORT_TAKEN, NO_CHIEF = "no JSON", "port taken", "no chief"  # the last one of parameter servers

_NO_SERVER = "UnknownError: Could not start gRPC server"
_TWO_CHIEFS = "ValueError: There must be at most one 'chief' job."


def labels() -> dict[str, str]:
    """Returns the mistakes that TF_CONFIG can have, each with its name in the reader's language."""
    return {
        "one address twice": _("one address twice"),
        "index counted from 1": _("index counted from 1"),
        "no port": _("no port"),
        "two chiefs": _("two chiefs"),
        "evaluator inside": _("evaluator in the cluster"),
        NO_JSON: _("Python instead of JSON"),
        PORT_TAKEN: _("port taken"),
    }


def mistaken(cluster: ClusterSpec, mistake: str) -> str:
    """Returns TF_CONFIG of the last worker with a mistake in it; what is taken is its port.

    >>> mistaken(ClusterSpec({"worker": ["host0:12345"]}), "index counted from 1")
    '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 1}}'
    """
    last = cluster.num_tasks(WORKER) - 1
    config: dict[str, Any] = json.loads(cluster.tf_config(Task(WORKER, last)))
    jobs, workers = config["cluster"], config["cluster"][WORKER]
    if mistake == "one address twice":
        workers[last:] = [workers[0]] if last else [workers[0]] * 2
    elif mistake == "index counted from 1":
        config["task"]["index"] = last + 1
    elif mistake == "no port":
        workers[last] = workers[last].partition(":")[0]
    elif mistake == "two chiefs":
        jobs[CHIEF] = [*jobs.get(CHIEF, ["host8:12345"]), "host9:12345"]
    elif mistake == "evaluator inside":
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
        mistake: one of `labels()`, or `NO_CHIEF`.
    """
    count, servers = cluster.num_tasks(WORKER), cluster.has_servers
    host = cluster.addresses[Task(WORKER, count - 1)].partition(":")[0]
    raised = {
        "index counted from 1": f"ValueError: The `task_id` {count} exceeds the maximum id of worker.",
        "no port": f'InvalidArgumentError: Could not parse port for local server from "{host}".',
        "two chiefs": _TWO_CHIEFS,
        NO_JSON: "JSONDecodeError: Expecting property name enclosed in double quotes",
        PORT_TAKEN: _NO_SERVER,
    }
    if servers:
        raised["index counted from 1"] = f'InternalError: Task {count} was not defined in job "worker"'
        del raised["two chiefs"]
    if mistake in raised:
        return _("TensorFlow 2.21 raises {error}", error=raised[mistake])
    trained_at_one_address = _(
        "TensorFlow 2.21 does not look for it: the second of them raises {error}, and the others wait for an"
        " hour.",
        error=_NO_SERVER,
    )
    served_at_one_address = _(
        "TensorFlow 2.21 does not look for it: the second of them raises {error}, the chief {of_chief},"
        " and the others wait without end.",
        error=_NO_SERVER,
        of_chief="InvalidArgumentError: EagerService:CreateContext failed.",
    )
    return {
        "one address twice": served_at_one_address if servers else trained_at_one_address,
        "two chiefs": _(
            "TensorFlow 2.21: workers and servers start and wait; a chief raises {error}", error=_TWO_CHIEFS
        ),
        "evaluator inside": _("TensorFlow 2.21 accepts it in silence."),
        NO_CHIEF: _("TensorFlow 2.21 accepts it in silence, and workers and servers wait without end."),
    }[mistake]
