"""The pictures of this lesson: losses of several programs, and of optimizers over the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture

_HIGHEST = 2.4  # about the loss of a network that knows nothing: above it a rate is too high


def loss_curves(runs: Mapping[str, Mapping[str, Any]]) -> Picture:
    """Returns the losses of programs, each named at the right end of its line."""
    figure, axes = _sheet(_("step"))
    for (name, run), (colour, dashes, _marker) in zip(runs.items(), STYLES, strict=False):
        losses = run["losses"]
        axes.plot(range(1, len(losses) + 1), losses, color=colour, linestyle=dashes)
        axes.annotate(name, (len(losses), losses[-1]), (6, -4), textcoords="offset points", color=colour)
    text = _("Picture: losses of the programs {names}. All of them fall.", names=", ".join(runs))
    return Picture.of(figure, text)


def factor_curves(factors: Mapping[str, Sequence[float]]) -> Picture:
    """Returns the factor of each program over the steps, each named at the right end of its line."""
    figure, axes = _sheet(_("step"))
    axes.set_ylabel("$c_t$")
    for (name, values), (colour, dashes, _marker) in zip(factors.items(), STYLES, strict=False):
        axes.plot(range(1, len(values) + 1), values, color=colour, linestyle=dashes)
        axes.annotate(name, (len(values), values[-1]), (6, -4), textcoords="offset points", color=colour)
    axes.set_ylim(bottom=0)
    return Picture.of(
        figure, _("Picture: the factor of each step in the programs {names}.", names=", ".join(factors))
    )


def rate_curves(tried: Mapping[str, Mapping[float, tuple[float, float]]]) -> Picture:
    """Returns the test loss over the learning rate, with a line for each optimizer and its best rate."""
    figure, axes = _sheet(_("learning rate"))
    text = _("Picture: test loss over the learning rate, a line for each optimizer.")
    told = []
    for (name, results), (colour, dashes, marker) in zip(tried.items(), STYLES, strict=False):
        losses = [loss if loss < _HIGHEST else _HIGHEST for loss, _accuracy in results.values()]
        axes.plot(list(results), losses, color=colour, linestyle=dashes, marker=marker, label=name)
        best = min(zip(losses, results, strict=True))[1]
        told.append(_("{name}: best at {rate}.", name=name, rate=best))
    axes.set(xscale="log", yscale="log")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return Picture.of(figure, text, *told)


def _sheet(label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(label)
    axes.set_ylabel(_("loss"))
    axes.grid(visible=True, alpha=0.3)
    return figure, axes
