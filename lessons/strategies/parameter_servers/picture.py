"""The pictures of this lesson: who waits, who sends what, a weight that jumps."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure as Panel

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import Picture
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node
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
    """Returns a gradient of the slow worker, from its pull to its push, and the updates in between."""
    unit = 44
    nodes: list[Node] = [shapes.text(0, 20, _("worker {index}", index=0))]
    for number in range(1, 11):
        nodes += cell((80 + unit * (number - 1), 0, unit, 30), Line(str(number)), fill=2)
    left, right = 80, 80 + 10 * unit
    nodes.append(shapes.text(0, 56, _("worker {index}", index=1)))
    nodes += cell((left, 36, right - left, 30), Line("11"), fill=3)
    pull, push = _("pull"), _("push")
    nodes += (*arrow(left, 92, 69, pull), *arrow(right, 69, 92, push, left=True))
    says = _("10 updates in between: staleness 10")
    nodes.append(shapes.text((left + right) / 2, 86, says, anchor="middle", bold=True))
    title = _("A gradient of worker 1, from its pull to its push")
    words = [
        _("worker {index}", index=0) + ": 1 … 10",
        _("worker {index}", index=1) + f": {pull}, 11, {push}",
        says,
    ]
    return framed(title, [Drawing(right + 10, 98, tuple(nodes))], words)


def servers_picture() -> Figure:
    """Returns a coordinator, two workers and two servers, and what goes between them."""
    step, pull, push = _("a step"), _("pull the variables"), _("push a gradient")
    title, coordinator = _("Training with parameter servers"), _("coordinator: a queue of steps")
    nodes = [*cell((0, 0, 600, 30), Line(coordinator, bold=True), fill=shapes.EMPTY)]
    text = [coordinator, _("from the coordinator to each worker: {what}", what=step)]
    for at in range(2):
        left = 310 * at
        worker, server = _("worker {index}", index=at), _("server {index}: a part of the variables", index=at)
        nodes += cell((left, 80, 290, 30), Line(worker, bold=True), fill=2 + at)
        nodes += cell((left, 170, 290, 30), Line(server, bold=True), fill=at)
        nodes += arrow(left + 145, 32, 77, step)
        nodes += (*arrow(left + 135, 168, 113, pull, left=True), *arrow(left + 155, 112, 167, push))
        text += [worker, server]
    both = _("Each worker pulls from all servers, and pushes to all of them. No worker waits for another.")
    nodes.append(shapes.text(0, 222, both))
    text.append(_("from the servers to a worker: {what}", what=pull))
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
    text = _("Picture: the weight after each update, and whose gradient it was.")
    return Picture.of(figure, text, ", ".join(f"{w:.1f}" for *_rest, w in done))


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
    says = _("Picture: the weight over 30 updates, for gradients of staleness 0, 1, 3 and 7.")
    return Picture.of(figure, says, "; ".join(text))


def shards_picture() -> Figure:
    """Returns a matrix on two servers, and what a worker pulls and pushes in a step."""
    pull, push = _("pull"), _("push its gradient")
    title = _("A worker pulls all of W1, and pushes a gradient to each shard")
    worker = _("a worker: all of {name}", name="W1, 64 × 16")
    nodes: list[Node] = [*cell((0, 100, 600, 30), Line(worker, bold=True), fill=2)]
    text = [worker]
    for at in range(2):
        left, rows = 310 * at, ("0 … 31", "32 … 63")[at]
        server = _("server {index}: rows {rows} of W1", index=at, rows=rows)
        nodes += cell((left, 0, 290, 30), Line(server, bold=True), fill=at)
        nodes += (*arrow(left + 135, 32, 97, pull, left=True), *arrow(left + 155, 98, 33, push))
        text.append(f"{server}: {pull}, {push}")
    return framed(title, [Drawing(600, 134, tuple(nodes))], text)


def monday_picture(too_large: Sequence[float], divided: Sequence[float]) -> Picture:
    """Returns the weight on Monday at two rates, beside an all-reduce that updates once a second.

    Args:
        too_large: the weight after each update at the rate 0.5.
        divided: the same at 0.5/16.
    """
    per_second = 151
    figure = Panel(figsize=(7, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1)
    start = too_large[:46]
    above.plot([at / per_second for at in range(len(start))], start, color=shapes.SOFT_INK)
    above.set(title=_("rate {rate}, the first three tenths of a second", rate="0.5"), ylabel="w")
    seconds = [at / per_second for at in range(len(divided))]
    below.plot(
        seconds, divided, color=shapes.SOFT_INK, label=_("parameter servers, rate {rate}", rate="0.5/16")
    )
    slow = range(per_second, len(divided), per_second)
    pushed = [divided[at] for at in slow]
    below.plot(
        [seconds[at] for at in slow],
        pushed,
        "s",
        c=shapes.PALETTE[3],
        mec=shapes.INK,
        label=_("the slow worker has pushed"),
    )
    waiting = [8.0, 4.0, 2.0, 1.0]
    below.step(
        range(len(waiting)),
        waiting,
        where="post",
        color=shapes.INK,
        linestyle="--",
        label=_("all-reduce, rate {rate}", rate="0.5"),
    )
    below.set(title=_("rate {rate}, three seconds", rate="0.5/16"), xlabel=_("seconds"), ylabel="w")
    below.legend()
    for axes in (above, below):
        axes.axhline(0, color=shapes.LINE)
        axes.grid(visible=True, alpha=0.3)
    says = _("Picture: the weight on Monday, at two rates, and with an all-reduce.")
    numbers = ", ".join(f"{w:.2f}" for w in divided[::10])
    return Picture.of(figure, says, numbers)
