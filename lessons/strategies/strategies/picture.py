"""The pictures of this lesson: a step on two replicas, and the strategies by hardware."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.pictures.figures import Figure
from lessons.strategies.boxes import Box, Line, scheme_figure


def step_picture() -> Figure:
    """Returns one step on two replicas: batch, parts, gradients, their sum, equal updates."""
    names = _("replica 0, CPU:0"), _("replica 1, CPU:1")
    parts = _("examples 0, 1"), _("examples 2, 3")
    before, after = [], []
    for at, (name, part) in enumerate(zip(names, parts, strict=True)):
        gradient = Line(_("gradient of its part"), 3 + at, waits=True)
        before.append(Box(name, (Line(part, 3 + at), Line(_("a copy of the weights"), 0), gradient)))
        after.append(Box(name, (Line(_("sum of the gradients"), 1), Line(_("the weights, updated"), 2))))
    batch = Box(_("global batch"), (Line(_("examples 0, 1, 2, 3")),))
    split, summed = _("The batch is split."), _("An all-reduce: every replica gets the sum of the gradients.")
    title = _("One training step under MirroredStrategy")
    return scheme_figure(title, [[batch], split, before, summed, after])


def strategies_picture() -> Figure:
    """Returns the strategies by hardware, and where each keeps the variables."""
    variables, copy, none = _("all variables"), _("a copy"), _("no variables")
    one = Box("OneDeviceStrategy", (Line(f"GPU 0: {variables}", 0),))
    mirrored = Box("MirroredStrategy", tuple(Line(f"GPU {at}: {copy}", 0) for at in range(2)))
    machines = [_("worker {index}", index=at) for at in range(2)]
    workers = Box("MultiWorkerMirroredStrategy", tuple(Line(f"{each}: {copy}", 0) for each in machines))
    tpu = Box("TPUStrategy", tuple(Line(f"TPU {at}: {copy}", 0) for at in range(2)))
    central = Box("CentralStorageStrategy", (Line(f"CPU: {variables}", 0), Line(f"GPU 0, 1: {none}")))
    halves = tuple(Line(_("server {index}: one half", index=at), at + 1) for at in range(2))
    servers = Box("ParameterServerStrategy", (*halves, Line(_("workers: no variables"))))
    rows: list[str | list[Box]] = [_("One machine, synchronous"), [one, mirrored]]
    rows += [_("Several machines, or TPUs, synchronous"), [workers, tpu]]
    rows += [_("Variables apart: synchronous in one machine, or asynchronous"), [central, servers]]
    return scheme_figure(_("Which strategy for which hardware, and where it keeps the variables"), rows)
