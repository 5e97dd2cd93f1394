"""Pictures of `which_plan`: what overlap cannot hide, and planned beside published times."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import matplotlib.figure

from course_lib.i18n import _, join_sentences, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, headed

_HEIGHT, _SIZE = 24.0, 12.0
_SLOT = 30.0  # a block's backward pass
_COMPUTE, _HIDDEN, _EXPOSED = *shapes.PALETTE[:2], shapes.ALARM
_BLOCKS, _SHORT, _LONG = 8, 0.6, 1.4  # the exchange of a block, in slots

Points = Sequence[tuple[float, float]]


def exposed_exchange() -> Figure:
    """Returns two backward passes over time, one of which hides nearly all of its exchange."""
    says = [
        _("Upper lane: the backward pass of each block, the last block of the network first."),
        _("Lower lane: the all-reduce of the gradients of that block. Red: exposed."),
    ]
    short, long = _("a short exchange"), _("a long exchange")
    drawn = [
        arranging.titled(short, _two_lanes(_SHORT)),
        arranging.titled(long, _two_lanes(_LONG)),
    ]
    lines = [
        labelled(short, _("only the all-reduce of the first block comes after the backward pass")),
        labelled(long, _("the all-reduces go on after the backward pass")),
    ]
    return headed(_("What overlap hides"), drawn, [*says, *lines], width=620, says=says)


def _two_lanes(exchange: float) -> Drawing:
    names = [_("backward pass"), _("all-reduce")]
    label = max(text_width(name, _SIZE) for name in names) + 10
    nodes = [
        shapes.text(0, lane * (_HEIGHT + 4) + _HEIGHT / 2 + 4, name, size=_SIZE)
        for lane, name in enumerate(names)
    ]
    end = 0.0
    for at in range(_BLOCKS):
        block = Line(str(_BLOCKS - 1 - at))
        nodes += cell((label + at * _SLOT, 0, _SLOT, _HEIGHT), block, fill=_COMPUTE)
        start, end = max(at + 1.0, end), max(at + 1.0, end) + exchange
        hidden = min(max(_BLOCKS - start, 0), exchange)
        for begin, long, fill in (
            (start, hidden, _HIDDEN),
            (start + hidden, exchange - hidden, _EXPOSED),
        ):
            if long > 0:
                place = label + begin * _SLOT, _HEIGHT + 4, long * _SLOT, _HEIGHT
                nodes += cell(place, *([block] if long > exchange / 2 else []), fill=fill)
    return Drawing(label + _SLOT * end, 2 * _HEIGHT + 4, tuple(nodes))


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
    file = io.BytesIO()
    drawn.savefig(file)
    return Picture(file.getvalue(), join_sentences([text, _("; ").join(told)]), text)
