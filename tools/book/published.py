"""The published trainings beside the model of cost, for the page that asks how good the model is."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

import course_lib
from course_lib.pictures.curves import STYLES
from lessons.scale.published import Published, others, trainings

_TABLE = 10  # the rows of the table to whose first row the constant is fitted
_LABELLED = 0.5  # an error beyond which a point has its name
_BAND = 0.75, 1.25

Titles = Mapping[str, str]
Groups = dict[str, list[Published]]


def published_values(language: str, folder: Path) -> dict[str, Any]:
    """Returns what the page shows: the trainings in groups, all other rows, and the scatter plot."""
    found = trainings()
    groups = {
        "fitted": found[:1],
        "predicted": found[1:_TABLE],
        "published": [each for each in found[_TABLE:] if not each.settings["assumed"]],
        "assumed": [each for each in found[_TABLE:] if each.settings["assumed"]],
    }
    return {
        "published": groups,
        "published_others": others(),
        "scatter": partial(_scatter, language, folder, groups),
    }


def _scatter(language: str, folder: Path, groups: Groups, titles: Titles) -> str:
    """Draws the ratio of times against devices, into a file; returns what a page says to show it."""
    with mpl.rc_context():  # the Japanese font stays with the Japanese picture
        course_lib.setup(language=language)
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(*_BAND, color="0.93")
        axes.axhline(1, color="0.5", linewidth=1)
        for (group, found), (colour, _dashes, marker) in zip(groups.items(), STYLES, strict=False):
            points = [(int(each.settings["devices"]), 1 + each.row.error) for each in found]
            axes.scatter(*zip(*points, strict=True), label=titles[group], color=colour, marker=marker)
            far = [at for at, each in enumerate(found) if abs(each.row.error) > _LABELLED]
            for at, (offset, side) in zip(far, [(-8, "right"), (8, "left")], strict=False):
                name = f"{found[at].settings['name']}, ZeRO-{found[at].settings['zero']}"
                axes.annotate(name, points[at], xytext=(offset, -3), textcoords="offset points", ha=side)
        axes.set(xscale="log", ylim=(0, 1.5), xlabel=titles["devices"], ylabel=titles["ratio"])
        axes.legend(loc="lower left")
        png = io.BytesIO()
        figure.savefig(png, dpi=150)
    (folder / "published.png").write_bytes(png.getvalue())
    spans = [f"{titles[group]}: {spread(found)}" for group, found in groups.items()]
    return f"```{{image}} published.png\n:alt: {'. '.join([titles['ratio'], *spans])}\n```"


def spread(found: list[Published]) -> str:
    """Returns the smallest and the largest error."""
    ranked = sorted(found, key=lambda each: each.row.error)
    return f"{ranked[0].row.figures[-1]} … {ranked[-1].row.figures[-1]}"
