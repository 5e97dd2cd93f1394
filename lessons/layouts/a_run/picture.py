"""A picture of losses: a run that lost nothing, and three that lost a part of their state."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture

Losses = Mapping[int, float]


def lost_curves(runs: Mapping[str, Losses], first: int = 151) -> Picture:
    """Returns the losses of runs, each named by what it lost, from a step on."""
    names = {
        "nothing": _("nothing lost"),
        "slots": _("without the slots"),
        "step": _("without the step"),
        "order": _("without the order"),
    }
    lines = {
        names[lost]: {step: loss for step, loss in losses.items() if step >= first}
        for lost, losses in runs.items()
    }
    text = _("Picture: losses of steps 151 to 180, for a run that lost nothing and three that lost a part.")
    return _curves(lines, _("loss"), text)


def _curves(lines: Mapping[str, Losses], label: str, text: str) -> Picture:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, losses), (colour, dashes, marker) in zip(lines.items(), STYLES, strict=False):
        style = {"linestyle": dashes, "marker": marker, "markersize": 4, "linewidth": 1.4}
        axes.plot(list(losses), list(losses.values()), color=colour, label=name, **style)
    axes.set_xlabel(_("step"))
    axes.set_ylabel(label)
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return Picture.of(figure, text)
