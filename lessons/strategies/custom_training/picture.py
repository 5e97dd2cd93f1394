"""The picture of two runs that differ in the divisor: their losses apart, their accuracies on each other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture

Run = tuple[Sequence[float], Sequence[float]]  # its losses and its accuracies, step by step


def two_runs(wrong: Run, right: Run) -> Picture:
    """Returns the loss and the accuracy of each step, with the wrong divisor and the right one."""
    runs = {_("mean of a replica's own losses"): wrong, _("divided by the global batch size"): right}
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for at, (axes, label) in enumerate(zip(figure.subplots(1, 2), (_("loss"), _("accuracy")), strict=True)):
        for (name, run), (colour, dashes, marker) in zip(runs.items(), STYLES, strict=False):
            told = {"label": name} if at == 0 else {}
            steps = range(1, len(run[at]) + 1)
            axes.plot(steps, run[at], color=colour, linestyle=dashes, marker=marker, markersize=4, **told)
        axes.set(xlabel=_("step"), ylabel=label, xticks=(1, 5, 10, 15, 20))
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    text = _("Picture: loss and accuracy of twenty steps, with each of the two divisors.")
    return Picture.of(figure, text)
