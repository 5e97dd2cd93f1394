"""The pictures of this lesson: a step, whose rows are normalized, strategies by hardware, and timelines."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.figures import Figure, framed
from lessons.strategies.boxes import WAITING, Box, Line, Span, scheme_figure, timeline


def step_picture() -> Figure:
    """Returns one step on two replicas: batch, parts, gradients, their sum, equal updates."""
    names = _("replica 0, CPU:0"), _("replica 1, CPU:1")
    before, after = [], []
    for at, (name, part) in enumerate(zip(names, (_("examples 1, 2"), _("examples 3, 4")), strict=True)):
        gradient = Line(_("gradient of its part"), 3 + at, waits=True)
        before.append(Box(name, (Line(part, 3 + at), Line(_("a copy of the weights"), 0), gradient)))
        after.append(Box(name, (Line(_("sum of the gradients"), 1), Line(_("the weights, updated"), 2))))
    batch = Box(_("global batch"), (Line(_("examples 1, 2, 3, 4")),))
    split, summed = _("The batch is split."), _("An all-reduce: every replica gets the sum of the gradients.")
    title = _("One training step under MirroredStrategy")
    return scheme_figure(title, [[batch], split, before, summed, after])


def death_picture() -> Figure:
    """Returns step 65 of the opening's training: how one replica's nan gets into both."""
    names = _("replica 0"), _("replica 1")
    alive = Line(_("1 review"), 0), Line(_("gradient of gamma: numbers"), 3, waits=True)
    dead = Line(_("no review")), Line(_("gradient of gamma: nan"), 5, waits=True)
    before = [Box(name, lines) for name, lines in zip(names, (alive, dead), strict=True)]
    after = [Box(name, (Line(_("gamma: nan"), 5),)) for name in names]
    summed = _("An all-reduce: numbers + nan = nan, on every replica")
    return scheme_figure(_("Step 65: how the model died"), [before, summed, after])


def normalization_picture() -> Figure:
    """Returns by which mean rows are normalized: on one device, on two replicas, and on synchronized ones."""

    def box(name: str, rows: str, mean: float) -> Box:
        return Box(name, (Line(_("rows {rows}", rows=rows)), Line(_("mean {mean}", mean=mean), int(mean))))

    zero, one = (_("replica {number}", number=number) for number in range(2))
    scheme: list[str | list[Box]] = [_("One device"), [box(_("one device"), "1, 2, 3, 4", 2.5)]]
    scheme += [_("Two replicas"), [box(zero, "1, 2", 1.5), box(one, "3, 4", 3.5)]]
    synchronized = _("Two replicas, with synchronized=True")
    scheme += [synchronized, [box(zero, "1, 2", 2.5), box(one, "3, 4", 2.5)]]
    return scheme_figure(_("Which mean is a row normalized by?"), scheme)


def strategies_picture() -> Figure:
    """Returns the strategies by hardware, and where each keeps the variables."""
    variables, copy, none = _("all variables"), _("a copy"), _("no variables")
    one = Box("OneDeviceStrategy", (Line(f"GPU 0: {variables}", 0),))
    mirrored = Box("MirroredStrategy", tuple(Line(f"GPU {at}: {copy}", 0) for at in range(2)))
    machines = [_("worker {index}", index=at) for at in range(2)]
    workers = Box("MultiWorkerMirroredStrategy", tuple(Line(f"{each}: {copy}", 0) for each in machines))
    tpu = Box("TPUStrategy", tuple(Line(f"TPU {at}: {copy}", 0) for at in range(2)))
    central = Box("CentralStorageStrategy", (Line(f"CPU: {variables}", 0), Line(f"GPU 0, 1: {none}")))
    halves = tuple(Line(_("server {index}: half of the variables", index=at), at + 1) for at in range(2))
    servers = Box("ParameterServerStrategy", (*halves, Line(_("workers: no variables"))))
    rows: list[str | list[Box]] = [_("One machine: synchronous"), [one, mirrored, central]]
    rows += [_("Several machines, or TPUs: synchronous"), [workers, tpu]]
    rows += [_("Several machines: asynchronous"), [servers]]
    return scheme_figure(_("Which strategy for which hardware, and where it keeps the variables"), rows)


def timelines_picture() -> Figure:
    """Returns three steps of two devices that wait for each other, or do not; A to C are stale."""
    looks: dict[str, tuple[str, str | int, dict[str, Any]]] = {".": (_("waits"), shapes.PANEL, WAITING)}
    for step, letter in enumerate("ABC", 1):
        red = {"stroke": shapes.ALARM, "stroke_width": 3}
        looks[str(step)] = _("step {number}", number=step), step + 2, {}
        looks[letter] = _("step {number} (stale)", number=step), step + 2, red
    drawings, told = [], []
    for heading, rows in (
        (_("Synchronous: 3 updates, each from the gradients of both"), ("11.222233..", "11122..3333")),
        (_("Asynchronous: 6 updates, each from the gradient of one"), ("11BBBB33", "AAA22CCCC")),
    ):
        lanes: dict[str, list[Span]] = {}
        for at, row in enumerate(rows):
            runs = [(letter, len(list(run))) for letter, run in groupby(row)]
            bars = [(looks[letter][0], units, *looks[letter][1:]) for letter, units in runs]
            lanes[_("device {number}", number=at)] = bars
        drawing, words = timeline(heading, lanes, 48)
        drawings.append(drawing)
        told += words
    return framed(_("Three steps of two devices, time to the right"), drawings, told)
