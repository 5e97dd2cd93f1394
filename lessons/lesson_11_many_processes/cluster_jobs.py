"""The jobs of a cluster, and what must hold for their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _, ngettext

CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"
IN_CLUSTER = (CHIEF, WORKER, PS)  # the evaluator has no address there: nobody talks with it
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9._-]+:[0-9]{1,5}")

Jobs = dict[str, tuple[str, ...]]


def checked(jobs: Mapping[str, Iterable[str]]) -> Jobs:
    """Returns for each job its addresses, the jobs in their usual order.

    Raises:
        CourseError: an unknown job, the evaluator, what is no address, an address given twice, two chiefs, or
            parameter servers without a chief or a worker.
    """
    for job in jobs:
        _require_job(job)
    addresses = {job: tuple(jobs[job]) for job in IN_CLUSTER if job in jobs}
    _require_different(addresses)
    _require_roles(addresses)
    return addresses


def _require_job(job: str) -> None:
    if job == EVALUATOR:
        task = '{"type": "evaluator", "index": 0}'
        raise CourseError(
            _("The evaluator is among the jobs of the cluster, but takes no part in the training."),
            allowed=_("the jobs {jobs}", jobs=_(", ").join(IN_CLUSTER)),
            cure=_("Leave it out; only its own task names it: {task}.", task=task),
        )
    cure = _("Rename it: who leads is the chief, who trains a worker, who holds variables a ps.")
    one_of(job, IN_CLUSTER, _("A cluster has no job {job!r}.", job=job), cure=cure)


def _require_different(jobs: Jobs) -> None:
    tasks: dict[str, str] = {}
    for job, addresses in jobs.items():
        for index, address in enumerate(addresses):
            task = f"{job} {index}"
            _require_address(address, task)
            first = tasks.setdefault(address, task)
            if first != task:
                same = {"first": first, "second": task, "address": address}
                raise CourseError(
                    _("{first} and {second} have the same address, {address}.", **same),
                    allowed=_("an address of its own for each task"),
                    cure=_("Give one of them another port, or the address of another machine."),
                )


def _require_address(address: str, task: str) -> None:
    """Refuses what is no host with a port: TensorFlow 2.21 waits for such a one in silence."""
    if not _HOST_AND_PORT.fullmatch(address):
        raise CourseError(
            _("{address!r} cannot be the address of {task}.", address=address, task=task),
            allowed=_("host:port with a port from 1 to {last}, and nothing before or after", last=65_535),
            cure=_("Write for example {example}.", example='"host0:12345"'),
        )


def _require_roles(jobs: Jobs) -> None:
    num_chiefs = len(jobs.get(CHIEF, ()))
    if num_chiefs > 1:
        raise CourseError(
            ngettext("The cluster has {count} chief.", "The cluster has {count} chiefs.", num_chiefs),
            allowed=_("one chief, or none: then worker 0 does what the chief would"),
            cure=_("Make the others workers."),
        )
    for job in (CHIEF, WORKER):
        if PS in jobs and job not in jobs:
            raise CourseError(
                _("The cluster has parameter servers, but no {job}.", job=job),
                allowed=_("servers with a chief, which coordinates, and with workers, which compute"),
                cure=_("Add a {job}, or leave the servers out.", job=job),
            )
