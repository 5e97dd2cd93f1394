"""The picture of a cluster: its tasks as boxes, what each does, and who talks with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.shapes import node
from lessons.strategies.links import link
from lessons.strategies.workers.cluster_spec import CHIEF, EVALUATOR, PS, WORKER, Place, Task

_WIDTH, _HEAD, _LINE, _PAD, _GAP, _SIZE = 560.0, 24.0, 19.0, 8.0, 12.0, 12.0


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
    width = max(_box_width(place, task) for task in place.tasks)
    rows = [arranging.flowing(_boxes(place, row, width), _GAP, _WIDTH) for row in _rows(place)]
    widest = max(row.width for row in rows)
    links = [link(told, widest) for told in talks(place)]
    alone = len(links) - len(rows) + 1  # a link more than there is between rows: the first row's own
    pieces = [rows[0], *links[:alone]]
    for joined, row in zip(links[alone:], rows[1:], strict=True):
        pieces += [joined, row]
    return arranging.stacked(pieces, 8)


def lines(place: Place) -> list[str]:
    """Returns what the picture shows: a line for each task, and who talks with whom."""
    return [*(_line(place, task) for task in place.tasks), *talks(place)]


def talks(place: Place) -> list[str]:
    """Returns who talks with whom, from the top of the picture down."""
    told = []
    if place.has_servers:
        told = [
            _("The chief tells the workers which steps to do; the variables are on the servers."),
            _("Workers get values from the servers and send gradients; none waits for another."),
        ]
    elif len(place.addresses) > 1:
        told = [_("All-reduce: in each step all send each other their gradients, and all wait for all.")]
    read = _(
        "The evaluator reads the checkpoints that {saver} writes; it talks with nobody.", saver=place.saver
    )
    return [*told, *([read] if place.evaluator else [])]


def roles(place: Place, task: Task) -> list[str]:
    """Returns what a task does.

    >>> roles(Place({"worker": ["host0:12345", "host1:12345"]}, Task("worker")), Task("worker"))
    ['trains', 'saves checkpoints, as chief']
    """
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


def _rows(place: Place) -> list[list[Task]]:
    """Returns the tasks row by row: those that exchange with each other in one, those that serve below."""
    kinds = [(CHIEF,), (WORKER,), (PS,)] if place.has_servers else [(CHIEF, WORKER)]
    rows = [[task for task in place.tasks if task.job in kind] for kind in (*kinds, (EVALUATOR,))]
    return [row for row in rows if row]


def _line(place: Place, task: Task) -> str:
    address, *does = _words(place, task)
    told = _("{task}, {address}: {does}", task=task, address=address, does=_(", ").join(does))
    return _("{told} (this task)", told=told) if task == place.task else told


def _words(place: Place, task: Task) -> list[str]:
    """Returns what is said of a task: its address and what it does."""
    return [place.addresses.get(task, _("without an address")), *roles(place, task)]


def _box_width(place: Place, task: Task) -> float:
    names = "  ".join([str(task), _("this task")])
    return max(text_width(each, _SIZE) for each in [names, *_words(place, task)]) + 3 * _PAD


def _boxes(place: Place, row: Sequence[Task], width: float) -> list[Drawing]:
    """Returns the tasks of a row, all of one height."""
    words = {task: _words(place, task) for task in row}
    height = _HEAD + _LINE * max(map(len, words.values())) + 8
    return [_box(task, words[task], width, height, marked=task == place.task) for task in row]


def _box(task: Task, words: Sequence[str], width: float, height: float, *, marked: bool) -> Drawing:
    """Returns a task: its name above, its address and what it does below."""
    frame = (0.5, 0.5, width - 1, height - 1)
    stroke, stroke_width = (shapes.INK, 3) if marked else (shapes.SOFT_INK, 1)
    nodes = [
        shapes.rectangle(*frame, fill=shapes.PANEL, stroke_width=0, radius=6),
        shapes.tab(1, 1, width - 2, _HEAD - 2, fill=shapes.PALETTE[_COLOURS[task.job]], radius=5),
        shapes.rectangle(*frame, fill="none", stroke=stroke, stroke_width=stroke_width, radius=6),
        shapes.text(_PAD, 16, str(task), size=_SIZE, bold=True),
    ]
    if marked:
        nodes.append(shapes.text(width - _PAD, 16, _("this task"), size=_SIZE, anchor="end"))
    for at, line in enumerate(words):
        address = at == 0 and task.job != EVALUATOR
        nodes.append(shapes.text(_PAD, _HEAD + _LINE * (at + 1) - 3, line, size=_SIZE, monospace=address))
    return Drawing(width, height, (node("g", *nodes, class_="holder this" if marked else "holder"),))


_COLOURS = {CHIEF: 1, WORKER: 0, PS: 2, EVALUATOR: 7}  # a job has a colour, and its name says the same
