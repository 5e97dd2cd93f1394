"""The quantities of a puzzle: what they are called, how they are shown, and the colours of their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.communication_text import bytes_text
from lessons.scale import plan_bars
from lessons.scale.cost import STAGE

COMPUTING, WAITING = "computing", "waiting"
# As all bars of this part have them. A network that `x` and `y` split has neither `model` nor stages.
COLOURS = {
    **plan_bars.COLOURS,
    "x": plan_bars.COLOURS["model"],
    "y": plan_bars.COLOURS[STAGE],
    WAITING: plan_bars.COLOURS["bubble"],
}
COUNTED = ("held", "sent")  # the quantities of par that devices were seen to have; the model says all others
IN_ONE_PIECE = shapes.LINE  # the colour of what has no parts


def name_of(quantity: str) -> str:
    """Returns what a quantity is called."""
    return {
        "held": _("Held by a device"),
        "variables": _("Variables on a device"),
        "result": _("AB on a device"),
        "rows": _("Rows of the batch on a device"),
        "activations": _("Activations on a device"),
        "sent": _("Sent by a device"),
        "collectives": _("Collectives"),
        "memory": _("Memory of a device"),
        "seconds": _("Time of a step"),
        "exchanged": _("Exchanges of a step"),
        "waiting": _("Waiting for other stages"),
        "nodes": _("Nodes of a group along `model`"),
    }[quantity]


def told(quantity: str, value: float) -> str:
    """Returns a value with its unit.

    >>> told("memory", 2.28e10), told("waiting", 8.5), told("sent", 1920)
    ('22.8 GB', '8.5 % of the step', '1,920 B')
    """
    if quantity in ("collectives", "nodes"):
        return f"{value:.0f}"
    if quantity in ("seconds", "exchanged"):
        return f"{value:.2f} s"
    if quantity == "waiting":
        return _("{percent} % of the step", percent=f"{value:.1f}")
    return f"{value / 1e9:.1f} GB" if quantity == "memory" else f"{bytes_text(value)} B"


def part_names(parts: Iterable[str]) -> dict[str, str]:
    """Returns what the parts of memory and time are called; exchanges have the name of mesh dimensions."""
    known = {
        **kind_names(),
        COMPUTING: _("computing"),
        WAITING: _("waiting for other stages"),
        STAGE: _("between stages"),
    }
    return {part: known.get(part) or _("over {dims}", dims=part) for part in parts}


def kind_names() -> dict[str, str]:
    """Returns what the kinds of memory are called."""
    told = plan_bars.words()
    return {kind: told[kind] for kind in plan_bars.MEMORY}


def part_colours(quantity: str, parts: Mapping[str, float]) -> dict[str, str]:
    """Returns the colours of the parts of memory and time; none where a quantity is shown in one piece."""
    if quantity not in ("memory", "seconds", "exchanged"):
        return {}
    return {part: COLOURS.get(part, IN_ONE_PIECE) for part in parts}
