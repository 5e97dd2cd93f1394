"""The pictures of this lesson: who sends what to whom, a weight that jumps, and a mesh over two processes."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib.figure import Figure as Panel

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node, node


def _arrow(x: float, top: float, bottom: float, says: str = "", left: bool = False) -> tuple[Node, ...]:
    """Returns an arrow from `top` to `bottom`, which may lie above, and what goes along it."""
    back = 7 if bottom > top else -7
    line = f"M{x} {top}V{bottom}M{x - 5} {bottom - back}L{x} {bottom}L{x + 5} {bottom - back}"
    aside, anchor = (x - 8, "end") if left else (x + 8, "start")
    label = shapes.text(aside, (top + bottom) / 2 + 4, says, anchor=anchor)
    return node("path", d=line, fill="none", stroke=shapes.INK, stroke_width=1.5), label


def servers_picture() -> Figure:
    """Returns a coordinator, two workers and two servers, and what goes between them."""
    step, fetch, push = _("a step"), _("fetch variables"), _("push a gradient")
    title, coordinator = _("Training with parameter servers"), _("coordinator: a queue of steps")
    nodes = [*cell((0, 0, 600, 30), Line(coordinator, bold=True), fill=shapes.EMPTY)]
    text = [coordinator, _("from the coordinator to each worker: {what}", what=step)]
    for at in range(2):
        left = 310 * at
        worker, server = _("worker {index}", index=at), _("server {index}: a part of the variables", index=at)
        nodes += cell((left, 80, 290, 30), Line(worker, bold=True), fill=2 + at)
        nodes += cell((left, 170, 290, 30), Line(server, bold=True), fill=at)
        nodes += _arrow(left + 145, 32, 77, step)
        nodes += (*_arrow(left + 135, 168, 113, fetch, left=True), *_arrow(left + 155, 112, 167, push))
        text += [worker, server]
    both = _("Each worker fetches from all servers, and pushes to all of them. No worker waits for another.")
    nodes.append(shapes.text(0, 222, both))
    text.append(_("from the servers to a worker: {what}", what=fetch))
    text.append(_("back to the servers: {what}", what=push))
    text.append(both)
    return framed(title, [Drawing(600, 226, tuple(nodes))], text)


def weight_picture(done: Sequence[tuple[int, int, int, float]]) -> Picture:
    """Returns the weight after each update: its number, its worker, the age of its gradient, the weight."""
    figure = Panel(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots(subplot_kw={"xlabel": _("update"), "ylabel": "w"})
    axes.plot([8.0, *(w for *_rest, w in done)], color=shapes.LINE)
    for index, (colour, _dashes, marker) in enumerate(STYLES[:2]):
        points = [(number, w) for number, worker, _age, w in done if worker == index]
        label = _("worker {index} has pushed", index=index)
        axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=4, label=label)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    file = io.BytesIO()
    figure.savefig(file)
    text = _("Picture: the weight after each update, and whose gradient it was.")
    return Picture(file.getvalue(), f"{text} " + ", ".join(f"{w:.1f}" for *_rest, w in done), text)


def clients_picture() -> Figure:
    """Returns a mesh of 4 x 2 devices over two processes: equal colours are equal rows of the batch."""
    nodes: list[Node] = []
    text = []
    for device in range(8):
        client, row, column = device // 4, device // 2, device % 2
        name = _("device {index}", index=device)
        y = 20 + 40 * row + 24 * client
        nodes += cell((150 + 140 * column, y, 120, 30), Line(name), fill=row)
        text.append(f"{name}: batch {row}, model {column}")
        if column == 0:
            nodes.append(shapes.text(140, y + 20, f"batch {row}", anchor="end"))
        if row == 0:
            nodes.append(shapes.text(210 + 140 * column, 10, f"model {column}", anchor="middle"))
    for client in range(2):
        nodes.append(shapes.text(0, 62 + 104 * client, _("client {index}", index=client), bold=True))
    nodes.append(node("path", d="M0 106H420", stroke=shapes.SOFT_INK, stroke_dasharray="6 4"))
    title = _("A mesh of 4 x 2 devices over two processes")
    return framed(title, [Drawing(420, 196, tuple(nodes))], text)
