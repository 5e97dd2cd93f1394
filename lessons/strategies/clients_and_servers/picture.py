"""The pictures of this lesson: who waits, who sends what, a weight that jumps, a mesh over two processes."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib.figure import Figure as Panel

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import Picture
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node, node
from lessons.strategies.boxes import WAITING, Span, arrow, timeline


def timelines_picture() -> Figure:
    """Returns two seconds of two workers, one ten times as slow as the other: all wait, or nobody does."""

    def gradients(worker: int, *updates: int) -> list[Span]:
        return [(str(update), (1, 10)[worker], 2 + worker, {}) for update in updates]

    wait: Span = (_("waits"), 9, shapes.PANEL, WAITING)
    waiting = [*gradients(0, 1), wait, *gradients(0, 2), wait], gradients(1, 1, 2)
    going_on = gradients(0, *range(1, 11), *range(12, 22)), gradients(1, 11, 22)
    drawings, text = [], []
    for heading, workers in (
        (_("An all-reduce, everybody waits: 4 gradients, 2 updates"), waiting),
        (_("Nobody waits: 22 gradients, 22 updates"), going_on),
    ):
        lanes = {_("worker {index}", index=at): spans for at, spans in enumerate(workers)}
        drawing, words = timeline(heading, lanes, 27)
        drawings.append(drawing)
        text += words
    title = _("Two seconds of two workers, time to the right: into which update each gradient goes")
    return framed(title, drawings, text)


def staleness_picture() -> Figure:
    """Returns a gradient of the slow worker, from its fetch to its push, and the updates in between."""
    unit = 44
    nodes: list[Node] = [shapes.text(0, 20, _("worker {index}", index=0))]
    for number in range(1, 11):
        nodes += cell((80 + unit * (number - 1), 0, unit, 30), Line(str(number)), fill=2)
    left, right = 80, 80 + 10 * unit
    nodes.append(shapes.text(0, 56, _("worker {index}", index=1)))
    nodes += cell((left, 36, right - left, 30), Line("11"), fill=3)
    fetch, push = _("fetch"), _("push")
    nodes += (*arrow(left, 92, 69, fetch), *arrow(right, 69, 92, push, left=True))
    says = _("10 updates in between: staleness 10")
    nodes.append(shapes.text((left + right) / 2, 86, says, anchor="middle", bold=True))
    title = _("A gradient of worker 1, from its fetch to its push")
    words = [
        _("worker {index}", index=0) + ": 1 … 10",
        _("worker {index}", index=1) + f": {fetch}, 11, {push}",
        says,
    ]
    return framed(title, [Drawing(right + 10, 98, tuple(nodes))], words)


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
        nodes += arrow(left + 145, 32, 77, step)
        nodes += (*arrow(left + 135, 168, 113, fetch, left=True), *arrow(left + 155, 112, 167, push))
        text += [worker, server]
    both = _("Each worker fetches from all servers, and pushes to all of them. No worker waits for another.")
    nodes.append(shapes.text(0, 222, both))
    text.append(_("from the servers to a worker: {what}", what=fetch))
    text.append(_("back to the servers: {what}", what=push))
    text.append(both)
    return framed(title, [Drawing(600, 226, tuple(nodes))], text)


def weight_picture(done: Sequence[tuple[int, int, int, float]]) -> Picture:
    """Returns the weight after each update: its number, its worker, the staleness, the weight."""
    figure = Panel(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots(subplot_kw={"xlabel": _("update"), "ylabel": "w"})
    axes.plot([8.0, *(w for *_rest, w in done)], color=shapes.LINE)
    for index, marker in enumerate("os"):
        points = [(number, w) for number, worker, _staleness, w in done if worker == index]
        label, colour = _("worker {index} has pushed", index=index), shapes.PALETTE[2 + index]
        axes.plot(*zip(*points, strict=True), marker, c=colour, mec=shapes.INK, markersize=6, label=label)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    file = io.BytesIO()
    figure.savefig(file)
    text = _("Picture: the weight after each update, and whose gradient it was.")
    return Picture(file.getvalue(), f"{text} " + ", ".join(f"{w:.1f}" for *_rest, w in done), text)


def swings_picture() -> Picture:
    """Returns 30 updates of the weight with the rate 0.5, for four stalenesses that all gradients have."""
    figure = Panel(figsize=(7, 4.2), layout="constrained")
    text = []
    for axes, staleness in zip(figure.subplots(2, 2, sharex=True).flat, (0, 1, 3, 7), strict=True):
        history = [8.0]
        for update in range(30):
            history.append(history[-1] - 0.5 * history[max(0, update - staleness)])
        axes.plot(history, "o-", color=shapes.SOFT_INK, mfc=shapes.PALETTE[0], markersize=4)
        axes.axhline(0, color=shapes.LINE)
        axes.set(title=_("staleness {number}", number=staleness), ylabel="w")
        axes.grid(visible=True, alpha=0.3)
        text.append(f"{staleness}: " + ", ".join(f"{w:.1f}" for w in history))
    for axes in figure.axes[2:]:
        axes.set_xlabel(_("update"))
    file = io.BytesIO()
    figure.savefig(file)
    says = _("Picture: the weight over 30 updates, for gradients of staleness 0, 1, 3 and 7.")
    return Picture(file.getvalue(), f"{says} " + "; ".join(text), says)


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
