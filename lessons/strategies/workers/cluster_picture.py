"""The picture of a cluster: its tasks as boxes, what each does, and who talks with whom."""

from __future__ import annotations

from collections import Counter

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from lessons.strategies.boxes import Box, Line, Scheme, scheme_drawing, scheme_lines
from lessons.strategies.workers.cluster_spec import CHIEF, EVALUATOR, PS, WORKER, Place, Task

_COLOURS = {CHIEF: 1, WORKER: 0, PS: 2, EVALUATOR: 7}  # a job has a colour, and its name says the same


def title(place: Place) -> str:
    """Returns how many tasks of each job there are.

    >>> title(Place({"worker": ["host0:12345", "host1:12345"]}, Task("worker")))
    'Cluster: 2 × worker'
    """
    counts = Counter(task.job for task in place.tasks)
    told = [_("{count} × {job}", count=count, job=job) for job, count in counts.items()]
    return _("Cluster: {jobs}", jobs=_(", ").join(told))


def drawing(place: Place) -> Drawing:
    """Returns the tasks as boxes, one of them marked, and between them who talks with whom."""
    return scheme_drawing(_scheme(place))


def lines(place: Place) -> list[str]:
    """Returns what the picture shows: a line for each task, and who talks with whom."""
    return scheme_lines(_scheme(place))


def _scheme(place: Place) -> Scheme:
    """Returns the tasks row by row: those that exchange with each other in one, those that serve below."""
    boxes = {task: _box(place, task) for task in place.tasks}
    chief, workers, servers, evaluator = (
        [box for task, box in boxes.items() if task.job == job] for job in (CHIEF, WORKER, PS, EVALUATOR)
    )
    scheme: list[list[Box] | str] = [[*chief, *workers]]
    if place.has_servers:
        steps = _("The chief tells the workers which steps to do; the variables are on the servers.")
        values = _("Workers get values from the servers and send gradients; none waits for another.")
        scheme = [chief, steps, workers, values, servers]
    elif len(place.addresses) > 1:
        exchange = _("All-reduce: in each step all send each other their gradients, and all wait for all.")
        scheme.append(exchange)
    if evaluator:
        scheme += [_evaluation(place), evaluator]
    return scheme


def _evaluation(place: Place) -> str:
    return _(
        "The evaluator reads the checkpoints that {saver} writes; it talks with nobody.", saver=place.saver
    )


def _box(place: Place, task: Task) -> Box:
    texts = [place.addresses.get(task, _("without an address")), *_roles(place, task)]
    note = _("this task") if task == place.task else ""
    return Box(str(task), tuple(map(Line, texts)), shapes.PALETTE[_COLOURS[task.job]], note)


def _roles(place: Place, task: Task) -> list[str]:
    saves = {CHIEF: _("saves checkpoints"), WORKER: _("saves checkpoints, as chief")}
    if task.job == PS:
        part, count = task.index + 1, len(place.jobs[PS])
        if count == 1:
            return [_("all variables")]
        return [_("variables, part {part} of {count}", part=part, count=count)]
    if task.job == EVALUATOR:
        return [_("evaluates checkpoints")]
    if place.has_servers:
        return [_("coordinates"), saves[CHIEF]] if task.job == CHIEF else [_("computes gradients")]
    return [_("trains"), *([saves[task.job]] if task == place.saver else [])]
