"""Pictures of `which_plan`: planned beside published times, and plans on two kinds of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.figure

from course_lib.i18n import _, labelled
from course_lib.pictures import shapes
from course_lib.pictures.curves import STYLES, Picture

Points = Sequence[tuple[float, float]]


def times_over_devices(times: Mapping[str, Points]) -> Picture:
    """Returns the time of a step over the number of devices, a line for each name."""
    names = {"published": _("published"), "yours": _("your planner")}
    drawn, told = _sheet(_("devices"), _("seconds of a step")), []
    axes = drawn.axes[0]
    for (name, points), (colour, dashes, marker) in zip(times.items(), STYLES, strict=False):
        label = names.get(name, name)
        axes.plot(*zip(*points, strict=True), color=colour, linestyle=dashes, marker=marker, label=label)
        seconds = [f"{each:.1f} s ({devices:,})" for devices, each in points]
        told.append(labelled(label, _(", ").join(seconds)))
    axes.set_xticks([devices for devices, _seconds in next(iter(times.values()))])
    axes.set_ylim(bottom=0)
    return _picture(drawn, _("Picture: the time of a step over the number of devices."), told)


def plans_on_both_links(plans: Mapping[str, Points]) -> Picture:
    """Returns plans as points: their times on fast links and on slow ones, with lines at the best of each."""
    drawn, told = _sheet(_("seconds on fast links"), _("seconds on slow links")), []
    axes = drawn.axes[0]
    for (name, points), (colour, _dashes, marker) in zip(plans.items(), STYLES, strict=False):
        fast, slow = zip(*points, strict=True)
        axes.scatter(fast, slow, s=16, color=colour, marker=marker, label=name)
        told.append(labelled(name, f"≥ {min(fast):.1f} s, ≥ {min(slow):.1f} s"))
    every = [point for points in plans.values() for point in points]
    axes.axvline(min(fast for fast, _slow in every), color=shapes.SOFT_INK, linewidth=1)
    axes.axhline(min(slow for _fast, slow in every), color=shapes.SOFT_INK, linewidth=1)
    axes.set(xlim=(13.5, 20), ylim=(15, 21))
    return _picture(drawn, _("Picture: plans by their time on fast links and on slow links."), told)


def _sheet(across: str, up: str) -> matplotlib.figure.Figure:
    drawn = matplotlib.figure.Figure(figsize=(6, 3), layout="constrained")
    drawn.subplots().set(xlabel=across, ylabel=up)
    return drawn


def _picture(drawn: matplotlib.figure.Figure, text: str, told: Sequence[str]) -> Picture:
    drawn.axes[0].grid(visible=True, alpha=0.3)
    drawn.axes[0].legend()
    return Picture.of(drawn, text, _("; ").join(told))
