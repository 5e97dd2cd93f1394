"""Pictures of a step: who shares a node, its time as a line and as bars, and compute against gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.figure

from course_lib.i18n import _, labelled, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell, shade
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node
from course_lib.pictures.text import devices_text
from lessons.scale.plan_bars import COLOURS, HEIGHT, SIZE, three_digits, time_text

_NODES, _IN_A_NODE, _SIDE, _GAP = 2, 8, 26.0, 18.0
_WIDTH, _BAR = 560.0, 400.0
_KINDS = ("computing", "model", "batch")
_WHOLE = "whole"  # a step whose parts nobody published


def nodes_of(sizes: Sequence[int]) -> Figure:
    """Returns two nodes of eight devices for each size of tensor parallelism, with who belongs together."""
    says = [
        _("Devices of one color are one replica. They add up activations."),
        _("Thick edges: the devices that add up gradients with device 0."),
    ]
    drawings, lines = [], []
    for size in sizes:
        partners = range(0, _NODES * _IN_A_NODE, size)
        nodes: list[Node] = []
        for device in range(_NODES * _IN_A_NODE):
            x = device * _SIDE + device // _IN_A_NODE * _GAP
            thick = device in partners and len(partners) > 1
            edge: dict[str, Any] = {"stroke": shapes.INK, "stroke_width": 3.0} if thick else {}
            line = Line(str(device), size=11, bold=thick)
            nodes += cell((x + 2, 2, _SIDE - 4, _SIDE - 4), line, fill=shade(device // size), **edge)
        width = _NODES * _IN_A_NODE * _SIDE + _GAP
        drawings.append(arranging.titled(f"tensor = {size}", Drawing(width, _SIDE, tuple(nodes))))
        replicas = [devices_text(range(first, first + size)) for first in partners]
        lines.append(labelled(f"tensor = {size}", _("; ").join(replicas)))
    title = _("Two nodes of eight devices")
    return headed(title, drawings, [*says, *lines], width=_WIDTH, says=says)


def step_over_time(compute: float, activations: float, microbatches: int, gradients: float) -> Figure:
    """Returns a step from left to right: all micro-batches, and at the end the gradients.

    Args:
        compute: the seconds that a micro-batch computes.
        activations: those of its all-reduces.
        microbatches: how many there are.
        gradients: the seconds of the all-reduce at the end.
    """
    whole = microbatches * (compute + activations) + gradients
    nodes, x = list[Node](), 0.0
    for kind, seconds in [("computing", compute), ("model", activations)] * microbatches + [
        ("batch", gradients)
    ]:
        width = _WIDTH * seconds / whole
        nodes += cell((x, 0, width, 2 * HEIGHT), fill=COLOURS[kind], stroke_width=0.5)
        x += width
    says = [
        ngettext(
            "A step of {time}: {count} micro-batch, and then the gradients",
            "A step of {time}: {count} micro-batches, and then the gradients",
            microbatches,
            time=time_text(whole),
        )
    ]
    parts = {"computing": microbatches * compute, "model": microbatches * activations, "batch": gradients}
    title = _("The time of a step")
    told = dict(zip(parts, _told(parts), strict=True))
    drawings = [Drawing(_WIDTH, 2 * HEIGHT, tuple(nodes)), _key(told)]
    return headed(title, drawings, [*says, *told.values()], width=_WIDTH, says=says)


def steps_beside(steps: Mapping[str, Mapping[str, float]]) -> Figure:
    """Returns steps as bars under each other, cut into their parts where these are known.

    Args:
        steps: by "explorer", "planner", "published" or a name of their own: the seconds of "computing",
            "model" and "batch", or of the "whole".
    """
    names = {"explorer": _("the explorer"), "planner": _("your planner"), "published": _("published")}
    full = max(sum(parts.values()) for parts in steps.values())
    drawings, lines = [], []
    for whose, parts in steps.items():
        label, time = names.get(whose, whose), time_text(sum(parts.values()))
        known = [] if _WHOLE in parts else _told(parts)
        heading = labelled(label, _("; ").join(known)) if known else label
        nodes: list[Node] = [shapes.text(0, SIZE, heading, size=SIZE)]
        x = 0.0
        for kind, seconds in parts.items():
            width = _BAR * seconds / full
            nodes += cell((x, SIZE + 6, width, HEIGHT), fill=COLOURS.get(kind, shapes.EMPTY))
            x += width
        nodes.append(shapes.text(x + 8, 2 * SIZE + 6, time, size=SIZE))
        width = max(_WIDTH, text_width(heading, SIZE))
        drawings.append(Drawing(width, SIZE + 6 + HEIGHT, tuple(nodes)))
        lines.append(labelled(label, labelled(time, _("; ").join(known)) if known else time))
    kinds = dict.fromkeys(kind for parts in steps.values() for kind in parts if kind != _WHOLE)
    key = _key({kind: _words()[kind] for kind in kinds})
    return headed(_("The time of a step"), [*drawings, key], lines, width=_WIDTH)


def compute_against_gradients(
    compute: Callable[[int], float], gradients: Callable[[int], float], counts: Sequence[int]
) -> Picture:
    """Returns two curves over the number of devices: how long they compute, and add up gradients.

    Args:
        compute: the seconds that so many devices compute in a step.
        gradients: the seconds of their all-reduce of gradients.
        counts: of devices.
    """
    drawn = matplotlib.figure.Figure(figsize=(7, 3.4), layout="constrained")
    axes, figures = drawn.subplots(), []
    orange, dashes, _marker = STYLES[1]
    for name, seconds, colour, style in (
        (_("computing"), compute, shapes.SOFT_INK, "solid"),
        (_("all-reduce of gradients"), gradients, orange, dashes),
    ):
        times = [seconds(count) for count in counts]
        axes.loglog(counts, times, color=colour, linestyle=style, marker="o", markersize=4, label=name)
        told = [f"{count:,}: {time_text(time)}" for count, time in zip(counts, times, strict=True)]
        figures.append(labelled(name, _(", ").join(told)))
    axes.set_xlabel(_("devices"))
    axes.set_ylabel(_("seconds of a step"))
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    text = _("Picture: computing and the all-reduce of gradients over the number of devices.")
    return Picture.of(drawn, text, _("; ").join(figures))


def _words() -> dict[str, str]:
    names = _("computing"), _("all-reduces of activations"), _("all-reduce of gradients")
    return dict(zip(_KINDS, names, strict=True))


def _told(parts: Mapping[str, float]) -> list[str]:
    return [f"{_words()[kind]} {three_digits(seconds)} s" for kind, seconds in parts.items()]


def _key(names: Mapping[str, str]) -> Drawing:
    """Returns what the colours of these kinds stand for."""
    entries = []
    for kind, name in names.items():
        nodes = (*cell((0, 0, 16, HEIGHT), fill=COLOURS[kind]), shapes.text(22, 12, name, size=SIZE))
        entries.append(Drawing(24 + text_width(name, SIZE), HEIGHT, nodes))
    return arranging.flowing(entries, 12, _WIDTH)
