"""Pictures of recorded times: two lines over the batch size, and the parts of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.measured.files import load
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure as Drawn
from course_lib.pictures.figures import framed


def times_picture() -> Picture:
    """Returns the recorded time of a step over its batch size, on one device and on eight."""
    times = load("faster-batch_sizes").step_times
    sizes = [each.batch_size for each in times]
    lines = {
        _("one device"): [1e3 * each.one_device_seconds for each in times],
        _("eight devices"): [1e3 * each.eight_devices_seconds for each in times],
    }
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    for (name, values), (colour, _dashes, marker) in zip(lines.items(), STYLES, strict=False):
        axes.loglog(sizes, values, color=colour, marker=marker, label=name)
    axes.set_xlabel(_("reviews in a step"))
    axes.set_ylabel(_("milliseconds a step"))
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20, 50], [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    text = _("Picture: recorded time of a training step over its batch size, on one device and on eight.")
    figures = [f"{name}: " + ", ".join(f"{value:.1f}" for value in values) for name, values in lines.items()]
    return Picture.of(figure, text, *figures)


def parts_picture() -> Drawn:
    """Returns the recorded parts of a data-parallel step of 64 reviews."""
    titles = {
        "dispatch": _("starting"),
        "reviews": _("the reviews"),
        "adam": _("the update"),
        "collectives": _("the all-reduces"),
    }
    heading = _("Milliseconds of a step with 64 reviews, on eight devices")
    return _drawn(heading, [_bars("", titles)])


def gains_picture() -> Drawn:
    """Returns the recorded times of a data-parallel step of 64 reviews, cure after cure."""
    on_eight = {
        "means": _("one step a call, two all-reduces"),
        "single": _("one step a call, one all-reduce"),
        "unread": _("one step a call, losses read every 32 steps"),
        "loop": _("32 steps a call"),
    }
    on_one = {"one_means": _("one step a call"), "one_loop": _("32 steps a call")}
    groups = [_bars(_("eight devices"), on_eight), _bars(_("one device"), on_one)]
    return _drawn(_("Milliseconds of a step with 64 reviews, trained from files"), groups)


def _bars(group: str, titles: Mapping[str, str]) -> Bars:
    record = load("faster-step_parts").step_parts.data
    bars = [Bar(title, record[part], f"{1e3 * record[part]:.2f}") for part, title in titles.items()]
    return Bars(group, tuple(bars))


def _drawn(heading: str, groups: Sequence[Bars]) -> Drawn:
    return framed(heading, [bars_drawing(groups)], bar_lines(groups))
