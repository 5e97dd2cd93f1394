"""The picture of a timeline: a lane down for each device, joined where devices wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import colour
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.shapes import Node, node, number
from course_lib.specs.mesh import MeshSpec
from lessons.lesson_03_one_step.step import Event, Timeline

_LANE, _BOX_WIDTH, _BOX_HEIGHT, _GAP = 26.0, 20.0, 15.0, 5.0
_TEXT_GAP, _TEXT_SIZE, _TEXT_WIDTH, _LEAST_WIDTH = 14.0, 11.5, 250.0, 440.0


@draw.register
def _timeline_figure(timeline: Timeline) -> Figure:
    mesh = timeline.plan.mesh
    title = _("A step under the plan {plan!r} on the mesh {mesh}", plan=timeline.plan.name, mesh=mesh)
    numbers = (
        shapes.text(_LANE * (device_id + 0.5), 11, str(device_id), anchor="middle", bold=True)
        for device_id in range(mesh.size)
    )
    head = Drawing(_LANE * mesh.size, 13, tuple(numbers))
    lanes = arranging.stacked([head, *(_row(mesh, event) for event in timeline.events)], _GAP)
    told, says = _told(timeline), [_says(event) for event in timeline.events]
    legend = [_("Stripes mark a partial sum that waits to be added.")] if timeline.all_reduces else []
    width = max(lanes.width, _LEAST_WIDTH)
    drawings = [
        arranging.lines_of_text([title], size=14, max_width=width),
        arranging.lines_of_text([*told, *legend], size=12, max_width=width, fill=shapes.SOFT_INK),
        lanes,
    ]
    return framed(title, drawings, [*told, "", *(f"  {line}" for line in says)])


def _told(timeline: Timeline) -> list[str]:
    """Returns what the lanes mean, and for each mesh dimension which devices wait for each other."""
    lines = [_("From the top down: an order in which it can happen, without times.")]
    for name in dict.fromkeys(event.mesh_dim for event in timeline.all_reduces if event.mesh_dim):
        groups = " / ".join(" ".join(map(str, group)) for group in timeline.plan.mesh.groups(name))
        lines.append(_("Over {name}, these wait for each other: {groups}.", name=name, groups=groups))
    return lines


def _says(event: Event) -> str:
    names = ", ".join(event.names)
    if event.mesh_dim is None:
        return _("compute: {names}", names=names)
    return _("all-reduce over {name}: {names}", name=event.mesh_dim, names=names)


def _row(mesh: MeshSpec, event: Event) -> Drawing:
    """Returns an event: a box for each device, and beside them what happens."""
    boxes = _alone(mesh) if event.mesh_dim is None else _joined(mesh.groups(event.mesh_dim))
    says = arranging.lines_of_text([_says(event)], size=_TEXT_SIZE, max_width=_TEXT_WIDTH)
    return arranging.beside([Drawing(_LANE * mesh.size, boxes.height, boxes.nodes), says], _TEXT_GAP)


def _alone(mesh: MeshSpec) -> Drawing:
    nodes = [_box(device_id, 0, shapes.EMPTY) for device_id in range(mesh.size)]
    return Drawing(_LANE * mesh.size, _BOX_HEIGHT, tuple(nodes))


def _joined(groups: Sequence[Sequence[int]]) -> Drawing:
    """Returns the groups of an all-reduce, striped and joined by lines; groups that overlap get own rows."""
    rows: list[int] = []  # the last device in each row
    nodes: list[Node] = []
    for at, group in enumerate(groups):
        free = (row for row, last in enumerate(rows) if last < min(group))
        row = next(free, len(rows))
        rows[row : row + 1] = [max(group)]
        nodes += _group(group, row * (_BOX_HEIGHT + 2), colour(at))
    return Drawing(0, len(rows) * (_BOX_HEIGHT + 2) - 2, tuple(nodes))


def _group(group: Sequence[int], y: float, fill: str) -> list[Node]:
    middle, length = y + _BOX_HEIGHT / 2, _LANE * (max(group) - min(group))
    start = _LANE * (min(group) + 0.5)
    line = f"M{number(start)} {number(middle)}h{number(length)}"
    boxes = [_box(device_id, y, shapes.PANEL, fill) for device_id in group]
    return [node("path", d=line, stroke=shapes.SOFT_INK, stroke_width=2), *boxes]


def _box(device_id: int, y: float, fill: str, striped: str | None = None) -> Node:
    """Returns what one device does, striped where its partial sum waits."""
    size = _BOX_WIDTH, _BOX_HEIGHT
    stripes = [] if striped is None else [shapes.stripes(*size, stroke=striped)]
    face = shapes.rectangle(0, 0, *size, fill=fill, stroke_width=0)
    edge = shapes.rectangle(0, 0, *size, fill="none", stroke=shapes.SOFT_INK)
    place = Drawing(*size, (face, *stripes, edge)).at(_LANE * device_id + (_LANE - _BOX_WIDTH) / 2, y)
    return node("g", place, class_="wait" if stripes else "compute", data_device=str(device_id))
