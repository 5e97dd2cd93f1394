"""The picture of a cluster: its tasks as boxes, what each does, and who talks with whom."""

from __future__ import annotations

from collections import Counter

from course_lib.i18n import _
from course_lib.pictures import shapes
from lessons.strategies.boxes import Box, Line, Scheme
from lessons.strategies.workers.cluster_spec import CHIEF, EVALUATOR, PS, WORKER, Place

_COLOURS = {CHIEF: 1, WORKER: 0, PS: 2, EVALUATOR: 7}  # a job has a colour, and its name says the same


def title(place: Place) -> str:
    """Returns how many tasks of each job there are.

    >>> title(Place({"worker": ["host0:12345", "host1:12345"]}, "worker 0"))
    'Cluster: 2 × worker'
    """
    counts = Counter(task.split()[0] for task in place.tasks)
    told = [_("{count} × {job}", count=count, job=job) for job, count in counts.items()]
    return _("Cluster: {jobs}", jobs=_(", ").join(told))


def scheme_of(place: Place) -> Scheme:
    """Returns the tasks row by row: those that exchange with each other in one, those that serve below."""
    boxes = {task: _box(place, task) for task in place.tasks}
    chief, workers, servers, evaluator = (
        [box for task, box in boxes.items() if task.startswith(job)] for job in (CHIEF, WORKER, PS, EVALUATOR)
    )
    scheme: list[list[Box] | str] = [[*chief, *workers]]
    if PS in place.jobs:
        steps = _("The chief tells the workers which steps to do; the variables are on the servers.")
        values = _("Workers get values from the servers and send gradients; none waits for another.")
        scheme = [chief, steps, workers, values, servers]
    elif len(place.addresses) > 1:
        exchange = _("All-reduce: in each step all send each other their gradients, and all wait for all.")
        scheme.append(exchange)
    if evaluator:
        reads = _(
            "The evaluator reads the checkpoints that {saver} writes; it talks with nobody.",
            saver=place.saver,
        )
        scheme += [reads, evaluator]
    return scheme


def _box(place: Place, task: str) -> Box:
    job, index = task.split()
    texts = [place.addresses.get(task, _("without an address")), *_roles(place, job, int(index))]
    note = _("this task") if task == place.task else ""
    return Box(task, tuple(map(Line, texts)), shapes.PALETTE[_COLOURS[job]], note)


def _roles(place: Place, job: str, index: int) -> list[str]:
    saves = {CHIEF: _("saves checkpoints"), WORKER: _("saves checkpoints, as chief")}
    if job == PS:
        part, count = index + 1, len(place.jobs[PS])
        if count == 1:
            return [_("all variables")]
        return [_("variables, part {part} of {count}", part=part, count=count)]
    if job == EVALUATOR:
        return [_("evaluates checkpoints")]
    if PS in place.jobs:
        return [_("coordinates"), saves[CHIEF]] if job == CHIEF else [_("computes gradients")]
    return [_("trains"), *([saves[job]] if f"{job} {index}" == place.saver else [])]
