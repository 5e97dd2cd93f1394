"""The picture of this lesson: the losses of several runs, which show how little a curve tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture
from course_lib.watch.curves import smoothed


def losses_picture(runs: Mapping[str, Sequence[float]]) -> Picture:
    """Returns a line for each run, by its name: at each step the mean of the last 20 losses."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    for (name, losses), (colour, dashes, _marker) in zip(runs.items(), STYLES, strict=False):
        axes.plot(range(1, len(losses) + 1), smoothed(losses), color=colour, linestyle=dashes, label=name)
    axes.set_xlabel(_("step"))
    axes.set_ylabel(_("loss (mean of the last 20 steps)"))
    axes.legend(frameon=False)
    axes.grid(visible=True, alpha=0.3)
    text = _("Picture: the loss of each run, step by step.")
    last = ", ".join(f"{name} {smoothed(losses)[-1]:.3f}" for name, losses in runs.items())
    return Picture.of(figure, text, _("At the end: {last}.", last=last))
