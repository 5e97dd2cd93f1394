"""Pictures of this lesson: two workers over time, with checkpoints and signals, and who saves where."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, framed, headed
from course_lib.pictures.shapes import Node, node
from lessons.strategies.boxes import WAITING, Box, Span, arrow, scheme_figure, timeline
from lessons.strategies.boxes import Line as Said

# What happens at a time: the number of a step, a checkpoint, or of each worker what begins, ends or comes.
Moment = int | str | tuple[str, str]
_SAVED, _BEGINS, _ENDS, _TELLS = "saved", "+", "-", "↑ "  # the latter three stand before what is said

_WIDTH, _NAME, _COLUMN, _SIZE = 620.0, 74.0, 44.0, 12.0
_LANES = (32.0, 92.0)  # the heights of worker 0 and worker 1


def killed_picture() -> Figure:
    """Returns a worker killed after step 4, and both started again from the checkpoint after step 3."""
    start, error = (_BEGINS + _("start"),) * 2, _ENDS + _("error")
    lost: list[Moment] = [start, 1, 2, 3, _SAVED, 4, ("", f"{_ENDS}SIGKILL"), (error, "")]
    title = _("Worker 1 is killed after step 4: step 4 is done a second time")
    return _lanes(title, [*lost, start, 4, 5, 6, _SAVED])


def warned_picture() -> Figure:
    """Returns a worker that gets SIGTERM: both save after the same step, and nothing is done twice."""
    start = (_BEGINS + _("start"),) * 2
    told = ("", _TELLS + _("after 4"))
    warned: list[Moment] = [start, 1, 2, ("", "SIGTERM"), 3, told, _SAVED, 4, _SAVED, (f"{_ENDS}75",) * 2]
    title = _("SIGTERM after step 2: both save after step 4, and no step is done twice")
    return _lanes(title, [*warned, start, 5, 6, _SAVED])


def saves_picture() -> Figure:
    """Returns into which folder each of three workers saves, and from which it restores."""
    shared, temporary = _("shared folder"), _("temporary folder")
    save, restore = _("save"), _("restore")
    nodes = [*cell((0, 0, 600, 30), Line(shared, bold=True), fill=2)]
    text = [shared]
    for index in range(3):
        left, worker = 205 * index, _("worker {index}", index=index)
        nodes += cell((left, 90, 190, 30), Line(worker, bold=True), fill=0)
        nodes += arrow(left + 110, 32, 87, restore)
        if index == 0:
            nodes += arrow(left + 80, 88, 33, save, left=True)
        else:
            nodes += arrow(left + 95, 122, 177, save)
            nodes += cell((left, 180, 190, 30), Line(temporary), fill=shapes.PANEL, **WAITING)
        where = temporary if index else shared
        text.append(
            _(
                "{worker} saves into: {folder}, restores from: {shared}",
                worker=worker,
                folder=where,
                shared=shared,
            )
        )
    return framed(
        _("Who saves where: nobody reads the temporary folders"), [Drawing(600, 212, tuple(nodes))], text
    )


def agree_picture() -> Figure:
    """Returns two workers that have restored steps 6 and 0, their average, and that both end."""
    average, has, ends = 3, list[Box](), list[Box]()
    for index, step in enumerate((6, 0)):
        worker = _("worker {index}", index=index)
        has.append(Box(worker, (Said(_("step {number}", number=step), data=step),)))
        ends.append(Box(worker, (Said(_("{step} ≠ {average}: ends", step=step, average=average)),)))
    sums = _("all-reduce: 6 + 0, on average 3")
    return scheme_figure(_("Two workers have restored different steps: both end"), [has, sums, ends])


def late_picture() -> Figure:
    """Returns two workers, of which one sees the latest checkpoint late, and what both restore."""
    sees, restores = list[Box](), list[Box]()
    for index, numbers in enumerate(([1, 2], [1])):
        worker = _("worker {index}", index=index)
        sees.append(Box(worker, (Said(_("sees {numbers}", numbers=numbers), data=numbers[-1]),)))
        restores.append(Box(worker, (Said(_("restores {file}", file="ckpt-1"), data=1),)))
    least = _("all-reduce: the minimum of 2 and 1 is 1")
    return scheme_figure(_("Worker 1 is late: both restore what both see"), [sees, least, restores])


def proxy_picture() -> Figure:
    """Returns which way a message to worker 1 takes with http_proxy, and with no_proxy beside it."""
    sender, receiver = (_("worker {index}", index=index) for index in range(2))
    nodes, text = list[Node](), []
    for y, variables in ((0, "http_proxy"), (80, "http_proxy, no_proxy")):
        nodes.append(shapes.text(0, y + 12, variables, monospace=True))
        nodes += cell((0, y + 20, 130, 30), Line(sender, bold=True), fill=0)
        nodes += cell((470, y + 20, 130, 30), Line(receiver, bold=True), fill=0)
        end = 466 if y else 231
        line = f"M134 {y + 35}H{end}m-7 -5l7 5l-7 5"
        nodes.append(node("path", d=line, fill="none", stroke=shapes.INK, stroke_width=1.5))
        if y:
            text.append(_("{variables}: the message goes straight to worker 1", variables=variables))
        else:
            nodes += cell((235, y + 20, 130, 30), Line(_("proxy")), fill=shapes.PANEL, **WAITING)
            lost = f"M412 {y + 29}l12 12m0-12l-12 12"
            nodes.append(node("path", d=lost, fill="none", stroke=shapes.ALARM, stroke_width=3))
            text.append(
                _("{variables}: the message goes to the proxy, and never arrives", variables=variables)
            )
    title = _("A message from worker 0 to worker 1, without and with no_proxy")
    return framed(title, [Drawing(600, 132, tuple(nodes))], text)


def night_picture() -> Figure:
    """Returns a job that is requeued after a kill, its two workers, and the checkpoint in their folder."""

    def steps(*numbers: int) -> list[Span]:
        return [(str(number), 1, 0, {}) for number in numbers]

    def rest(says: str, units: int) -> Span:
        return says, units, shapes.PANEL, WAITING

    lanes: dict[str, list[Span]] = {
        "Slurm": [(_("first run"), 7, 1, {}), rest(_("queue"), 2), (_("second run"), 3, 1, {})],
        _("worker {index}", index=0): [*steps(1, 2, 3, 4), rest(_("error"), 5), *steps(4, 5, 6)],
        _("worker {index}", index=1): [*steps(1, 2, 3, 4), rest("SIGKILL", 5), *steps(4, 5, 6)],
        _("saved"): [rest(_("nothing"), 3), (_("step 3"), 9, 2, {}), (_("step 6"), 2, 2, {})],
    }
    drawing, words = timeline(_("Time to the right; a number is a step"), lanes, 40)
    return framed(_("A night: the job is killed, requeued, and finishes"), [drawing], words)


def _lanes(title: str, moments: Sequence[Moment]) -> Figure:
    nodes, lines = list[Node](), []
    for worker, y in enumerate(_LANES):
        drawn, words = _lane(worker, y, moments)
        nodes += drawn
        name = _("worker {index}", index=worker)
        lines.append(f"  {name}: {' · '.join(words)}")
    for x, moment in _places(moments):
        if isinstance(moment, int):
            bar = f"M{x:g} {_LANES[0]:g}V{_LANES[1]:g}"
            nodes.append(
                node("path", d=bar, stroke=shapes.PALETTE[0], stroke_width=10, stroke_linecap="round")
            )
            nodes.append(shapes.text(x, sum(_LANES) / 2 + 4, str(moment), anchor="middle", bold=True))
    says = [_("A bar is a step, with its all-reduce; a flag is a checkpoint of worker 0.")]
    drawing = Drawing(_NAME + _COLUMN * len(moments), _LANES[1] + 30, tuple(nodes))
    return headed(title, [drawing], ["", *says, *lines], width=_WIDTH, says=says)


def _places(moments: Sequence[Moment]) -> list[tuple[float, Moment]]:
    return [(_NAME + _COLUMN * (at + 0.5), moment) for at, moment in enumerate(moments)]


def _lane(worker: int, y: float, moments: Sequence[Moment]) -> tuple[list[Node], list[str]]:
    """Returns what is drawn of a worker alone, and what its lane says."""
    nodes, words, begun = [shapes.text(0, y + 4, _("worker {index}", index=worker))], list[str](), 0.0
    for x, moment in [*_places(moments), (_NAME + _COLUMN * len(moments), (_ENDS, _ENDS))]:
        if isinstance(moment, int):
            words.append(_("step {number}", number=moment))
        elif isinstance(moment, str):
            if worker == 0:
                flag = f"M{x:g} {y:g}v-26h16l-5 6l5 6h-16z"
                nodes.append(node("path", d=flag, fill=shapes.PALETTE[2], stroke=shapes.INK))
                words.append(_("checkpoint"))
        elif said := moment[worker]:
            begun = x if said.startswith(_BEGINS) else begun
            if said.startswith(_ENDS):
                nodes.insert(0, node("path", d=f"M{begun:g} {y:g}H{x:g}", stroke=shapes.LINE, stroke_width=4))
            if said == _ENDS:
                break
            if not said.startswith(_BEGINS):
                nodes.append(_mark(said, x, y))
            words.append(said.strip(_BEGINS + _ENDS))
            nodes.append(shapes.text(x, y + (24 if worker else -12), words[-1], anchor="middle"))
    return nodes, words


def _mark(said: str, x: float, y: float) -> Node:
    """Returns what marks that a worker ends, tells the other something, or is sent a signal."""
    if said.startswith(_ENDS):
        mark = f"M{x:g} {y - 9:g}v18" if "75" in said else f"M{x - 6:g} {y - 6:g}l12 12m0-12l-12 12"
    elif said.startswith(_TELLS):
        mark = f"M{x:g} {y:g}V{_LANES[0] + 6:g}m-5 8l5 -8l5 8"
    else:
        return node("circle", cx=x, cy=y, r=5, fill=shapes.ALARM)
    return node("path", d=mark, fill="none", stroke=shapes.ALARM, stroke_width=3)
