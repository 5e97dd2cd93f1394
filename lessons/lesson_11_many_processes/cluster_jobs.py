"""The jobs of a cluster, and what must hold for their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from lessons.lesson_11_many_processes.addresses import require_address

CHIEF, WORKER, PS, EVALUATOR = JOBS = ("chief", "worker", "ps", "evaluator")
IN_CLUSTER = (CHIEF, WORKER, PS)  # the evaluator has no address there: nobody talks with it

Jobs = dict[str, tuple[str, ...]]


def checked(jobs: Mapping[str, Iterable[str]]) -> Jobs:
    """Returns for each job its addresses, the jobs in their usual order.

    Raises:
        CourseError: no task, an unknown job, the evaluator, what is no address, an address given twice, two
            chiefs, or parameter servers without a chief or a worker.
    """
    if not isinstance(jobs, Mapping) or not jobs:
        problem = _("The cluster {jobs!r} has no task.", jobs=jobs)
        raise _refused(problem, _("a dictionary: for each job the list of its addresses"))
    for job in jobs:
        _require_job(job)
    given = {job: _addresses(job, jobs[job]) for job in IN_CLUSTER if job in jobs}
    _require_different(given)
    _require_roles(given)
    return given


def _refused(problem: str, allowed: str) -> CourseError:
    example = '{"worker": ["host0:12345", "host1:12345"]}'
    return CourseError(problem, allowed=allowed, cure=_("Write for example {example}.", example=example))


def _require_job(job: object) -> None:
    if job == EVALUATOR:
        raise CourseError(
            _("The evaluator is among the jobs of the cluster, but takes no part in the training."),
            allowed=_("the jobs {jobs}", jobs=_(", ").join(IN_CLUSTER)),
            cure=_(
                "Leave it out; only its own task names it: {task}.", task='{"type": "evaluator", "index": 0}'
            ),
        )
    if job not in IN_CLUSTER:
        raise CourseError(
            _("A cluster has no job {job!r}.", job=job),
            allowed=_("the jobs {jobs}", jobs=_(", ").join(IN_CLUSTER)),
            cure=_("Rename it: who leads is the chief, who trains a worker, who holds variables a ps."),
        )


def _addresses(job: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        problem = _("The job {job!r} has {given!r} in place of its addresses.", job=job, given=given)
        raise _refused(problem, _("a list, also where there is only one address"))
    addresses = tuple(require_address(each, f"{job} {index}") for index, each in enumerate(given))
    if not addresses:
        problem = _("The job {job!r} has no address.", job=job)
        raise _refused(problem, _("an address for each task; a job without tasks is left out"))
    return addresses


def _require_different(jobs: Jobs) -> None:
    found: dict[str, str] = {}
    for job, addresses in jobs.items():
        for index, address in enumerate(addresses):
            if address in found:
                raise CourseError(
                    _(
                        "{first} and {second} have the same address, {address}.",
                        first=found[address],
                        second=f"{job} {index}",
                        address=address,
                    ),
                    allowed=_("an address of its own for each task"),
                    cure=_("Give one of them another port, or the address of another machine."),
                )
            found[address] = f"{job} {index}"


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
