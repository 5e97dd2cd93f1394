"""The picture of a cluster: its tasks as boxes, what each does, and who talks with whom."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.figures import Figure, figure, framed
from course_lib.pictures.links import link
from course_lib.pictures.shapes import node
from course_lib.specs.cluster import ClusterSpec, Place, Task
from course_lib.specs.cluster_jobs import CHIEF, EVALUATOR, PS, WORKER

_WIDTH, _HEAD, _LINE, _PAD, _GAP, _SIZE = 660.0, 24.0, 19.0, 8.0, 12.0, 12.0


@figure.register
def _cluster_figure(cluster: ClusterSpec) -> Figure:
    return _figure(cluster, None)


@figure.register
def _place_figure(place: Place) -> Figure:
    return _figure(place.cluster, place.task)


def _figure(cluster: ClusterSpec, marked: Task | None) -> Figure:
    drawings = [
        arranging.lines_of_text([title(cluster)], size=14, max_width=_WIDTH),
        cluster_drawing(cluster, marked),
    ]
    return framed(title(cluster), drawings, cluster_lines(cluster, marked))


def title(cluster: ClusterSpec) -> str:
    """Returns how many tasks of each job there are.

    >>> title(ClusterSpec({"worker": ["host0:12345", "host1:12345"]}))
    'Cluster: 2 × worker'
    """
    jobs = [job for job, _addresses in cluster.jobs] + [EVALUATOR] * cluster.evaluator
    return _("Cluster: {jobs}", jobs=_(", ").join(f"{cluster.num_tasks(job)} × {job}" for job in jobs))


def cluster_drawing(cluster: ClusterSpec, marked: Task | None = None) -> Drawing:
    """Returns the tasks as boxes, one of them marked, and between them who talks with whom."""
    width = max(_box_width(cluster, task) for task in cluster.tasks)
    rows = [
        arranging.flowing([_box(cluster, task, width, marked=task == marked) for task in row], _GAP, _WIDTH)
        for row in _rows(cluster)
    ]
    widest = max(row.width for row in rows)
    links = [link(told, widest) for told in talks(cluster)]
    alone = (
        len(links) - len(rows) + 1
    )  # the workers exchange among themselves: that link stands below their row
    pieces = [rows[0], *links[:alone]]
    for joined, row in zip(links[alone:], rows[1:], strict=True):
        pieces += [joined, row]
    return arranging.stacked(pieces, 8)


def cluster_lines(cluster: ClusterSpec, marked: Task | None = None) -> list[str]:
    """Returns what the picture shows: a line for each task, and who talks with whom."""
    return [*(_line(cluster, task, marked=task == marked) for task in cluster.tasks), *talks(cluster)]


def talks(cluster: ClusterSpec) -> list[str]:
    """Returns who talks with whom, from the top of the picture down."""
    told = []
    if cluster.has_servers:
        told = [
            _("The chief says which steps to do, and makes the variables on the servers."),
            _("Values come from the servers, gradients go to them; no worker waits for another."),
        ]
    elif len(cluster.ending) > 1:
        told = [
            _("All-reduce: in each step every one of them sends gradients to the others and waits for them.")
        ]
    read = _("It reads the checkpoints that {saver} writes; nobody talks with it.", saver=cluster.saver)
    return [*told, *([read] if cluster.evaluator else [])]


def roles(cluster: ClusterSpec, task: Task) -> list[str]:
    """Returns what a task does.

    >>> roles(ClusterSpec({"worker": ["host0:12345", "host1:12345"]}), Task("worker", 0))
    ['trains', 'saves checkpoints, as chief']
    """
    saves = {CHIEF: _("saves checkpoints"), WORKER: _("saves checkpoints, as chief")}
    if task.job == PS:
        part, count = task.index + 1, cluster.num_tasks(PS)
        return [
            _("variables, part {part} of {count}", part=part, count=count)
            if count > 1
            else _("all variables")
        ]
    if task.job == EVALUATOR:
        return [_("evaluates checkpoints")]
    if cluster.has_servers:
        return [_("coordinates"), saves[CHIEF]] if task.job == CHIEF else [_("computes gradients")]
    return [_("trains"), *([saves[task.job]] if task == cluster.saver else [])]


def _rows(cluster: ClusterSpec) -> list[list[Task]]:
    """Returns the tasks row by row: those that exchange with each other in one, those that serve below."""
    kinds = [(CHIEF,), (WORKER,), (PS,)] if cluster.has_servers else [(CHIEF, WORKER)]
    rows = [[task for task in cluster.tasks if task.job in kind] for kind in (*kinds, (EVALUATOR,))]
    return [row for row in rows if row]


def _line(cluster: ClusterSpec, task: Task, *, marked: bool) -> str:
    does = _(", ").join(roles(cluster, task))
    told = _("{task}, {address}: {does}", task=task, address=_address(cluster, task), does=does)
    return _("{told} (this task)", told=told) if marked else told


def _address(cluster: ClusterSpec, task: Task) -> str:
    return _("without an address") if task.job == EVALUATOR else cluster.address(task)


def _box_width(cluster: ClusterSpec, task: Task) -> float:
    names = text_width(f"{task}  {_('this task')}", _SIZE)
    words = [_address(cluster, task), *roles(cluster, task)]
    return max(names, *(text_width(each, _SIZE) for each in words)) + 4 * _PAD


def _box(cluster: ClusterSpec, task: Task, width: float, *, marked: bool) -> Drawing:
    """Returns a task: its name above, its address and what it does below."""
    words = [_address(cluster, task), *roles(cluster, task)]
    most = max(len(roles(cluster, each)) for each in cluster.tasks if each.job == task.job)
    height = _HEAD + _LINE * (most + 1) + 8
    edge = (
        {"stroke": shapes.INK, "stroke_width": 3}
        if marked
        else {"stroke": shapes.SOFT_INK, "stroke_width": 1}
    )
    nodes = [
        shapes.rectangle(0.5, 0.5, width - 1, height - 1, fill=shapes.PANEL, stroke_width=0, radius=6),
        shapes.tab(1, 1, width - 2, _HEAD - 2, fill=shapes.PALETTE[_COLOURS[task.job]], radius=5),
        shapes.rectangle(0.5, 0.5, width - 1, height - 1, fill="none", radius=6, **edge),
        shapes.text(_PAD, 16, str(task), size=_SIZE, bold=True),
        *([shapes.text(width - _PAD, 16, _("this task"), size=_SIZE, anchor="end")] if marked else []),
        *(
            shapes.text(_PAD, _HEAD + _LINE * (at + 1) - 3, each, size=_SIZE, monospace=at == 0)
            for at, each in enumerate(words)
        ),
    ]
    return Drawing(width, height, (node("g", *nodes, class_="holder this" if marked else "holder"),))


_COLOURS = {CHIEF: 1, WORKER: 0, PS: 2, EVALUATOR: 7}  # a job has a colour, and its name says the same
