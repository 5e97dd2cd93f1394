"""Mistakes in TF_CONFIG: how they look, and what TensorFlow does with each."""

from __future__ import annotations

import json

from course_lib.i18n import _
from lessons.strategies.cluster_spec import CHIEF, EVALUATOR, PS, WORKER, Place

NO_JSON, PORT_TAKEN = "no JSON", "port taken"

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


def mistaken(place: Place, mistake: str) -> str:
    """Returns the TF_CONFIG of a task, which is the last worker, with a mistake in it.

    >>> mistaken(Place({"worker": ["host0:12345"]}, "worker 0"), "index counted from 1")
    '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 1}}'
    """
    config = json.loads(place.tf_config)
    jobs, workers = config["cluster"], config["cluster"][WORKER]
    last = len(workers) - 1
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


def in_tensorflow(place: Place, mistake: str) -> str:
    """Returns what TensorFlow 2.21 does with a mistake: measured, with all tasks on one machine.

    The place is the one that was meant, of the last worker.
    """
    count, host = len(place.jobs[WORKER]), place.addresses[place.task].partition(":")[0]
    raised = {
        "index counted from 1": f"ValueError: The `task_id` {count} exceeds the maximum id of worker.",
        "no port": f'InvalidArgumentError: Could not parse port for local server from "{host}".',
        "two chiefs": _TWO_CHIEFS,
        NO_JSON: "JSONDecodeError: Expecting property name enclosed in double quotes",
        PORT_TAKEN: _NO_SERVER,
    }
    if PS in place.jobs:
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
        "one address twice": served_at_one_address if PS in place.jobs else trained_at_one_address,
        "two chiefs": _(
            "TensorFlow 2.21: workers and servers start and wait; a chief raises {error}", error=_TWO_CHIEFS
        ),
        "evaluator inside": _("TensorFlow 2.21 accepts it in silence."),
    }[mistake]
