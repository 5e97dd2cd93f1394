"""The pictures of this lesson: what each machine is told, and two workers while they train."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line as Text
from course_lib.pictures.cells import cell
from course_lib.pictures.figures import Figure, framed
from lessons.strategies.boxes import Box, Line, scheme_figure

Data = tuple[int | None, int | None] | None  # of both workers; None for an exchange

_WIDE, _HIGH, _LANE, _GAP, _BAR = 78.0, 30.0, 46.0, 7.0, 20.0


def cluster_picture() -> Figure:
    """Returns two machines: the program and the list of all are the same on both, the task is not."""
    hosts = '"cluster": {"worker": ["host0:12345", "host1:12345"]}'
    machines = []
    for at in range(2):
        same = Line(_("the program"), 0), Line(hosts, 3)
        task = Line(f'"task": {{"type": "worker", "index": {at}}}', 4 + at)
        machines.append([Box(_("machine host{index}", index=at), (*same, task))])
    link = _("The network: each worker finds the others by the addresses in “cluster”, and itself by “task”.")
    return scheme_figure(_("Two machines, and TF_CONFIG on each"), [machines[0], link, machines[1]])


def running_picture(*, together: bool = True) -> Figure:
    """Returns two steps of two workers as lanes: joined by all-reduces, or each for itself with all rows."""
    names = [_("worker {index}", index=at) for at in range(2)]
    first: tuple[list[str], Data] = ([_("weights {step}", step=0)] * 2, (0, 0))
    happens = [(names, (None, None)), first]
    for step, (start, half, end) in enumerate([(0, 16, 32), (32, 48, 64)]):
        parts = [(start, half), (half, end)] if together else [(start, end)] * 2
        rows = [_("rows {rows}", rows=f"{low}–{high - 1}") for low, high in parts]
        happens.append((rows, (2 * step + 1, 2 * step + 1 + together)))
        happens += [([_("all-reduce")] * 2, None)] * together
        happens.append(([_("weights {step}", step=step + 1)] * 2, (step + 5, step + 5)))
    columns = [_across(texts[0]) if data is None else _cells(texts, data) for texts, data in happens]
    lanes = [" → ".join(texts[at] for texts, _data in happens) for at in range(2)]
    alone = _("Two workers that don't know of each other: time runs to the right")
    title = _("Two workers while they train: time runs to the right") if together else alone
    return framed(title, [arranging.titled(title, arranging.beside(columns, _GAP))], lanes)


def _cells(texts: Sequence[str], data: tuple[int | None, int | None]) -> Drawing:
    """Returns what each of the two workers holds, one under the other; what is no data has no frame."""
    drawn, place = [], (0.5, 0.5, _WIDE - 1, _HIGH - 1)
    for text, number in zip(texts, data, strict=True):
        face = cell(place, Text(text), fill=number, radius=3, stroke_width=int(number is not None))
        drawn.append(Drawing(_WIDE, _HIGH, face))
    return arranging.stacked(drawn, _LANE - _HIGH)


def _across(text: str) -> Drawing:
    """Returns an exchange: a bar across both lanes."""
    height = _LANE + _HIGH
    bar = shapes.rectangle(0.5, 0.5, _BAR - 1, height - 1, fill=shapes.EMPTY, dashes="4 3", radius=3)
    words = shapes.text(0, 0, text, size=12, anchor="middle")
    place = f"translate({_BAR / 2 + 4:g} {height / 2:g}) rotate(-90)"
    return Drawing(_BAR, height, (bar, shapes.node("g", words, transform=place)))
