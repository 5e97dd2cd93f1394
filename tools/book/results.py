"""What `make results` measured, for the templates of the pages that show it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

import course_lib
from course_lib.i18n import _
from course_lib.measured.files import Record, load, names
from course_lib.measured.machine import sentences
from course_lib.measured.tables import table, title
from course_lib.measured.trainings import picture
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import framed

QUANTITIES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
APART = 2e-4  # losses are stored with four digits

Titles = Mapping[str, str]


def measured_values(language: str, folder: Path) -> dict[str, Any]:
    """Returns what was measured and what templates call: pictures are drawn into `folder`."""
    return {
        "measured": {name: load(name) for name in names()},
        "epochs_of": epochs_of,
        "schemes": [_schemes(source) for source in ("imdb", "stand_in")],
        "curves": partial(_curves, language, folder),
        "bars": partial(_bars, folder),
        "machine": sentences,
        "keras": _support("keras_layouts-support"),
    }


def epochs_of(run: Record) -> list[dict[str, str]]:
    """Returns for each epoch the lowest and highest value of each quantity, such as "0.512–0.688"."""
    spreads = []
    for seeds in zip(*run.epochs, strict=True):
        values = {quantity: [epoch[quantity] for epoch in seeds] for quantity in QUANTITIES}
        spreads.append({name: f"{min(each):.3f}–{max(each):.3f}" for name, each in values.items()})
    return spreads


def _schemes(source: str) -> dict[str, Any]:
    """Returns what schemes gave on some reviews, and the step, if any, where they part from one device."""
    measured = load(f"any_mesh-schemes_{source}")
    one, *others = (run.losses for run in measured.equal.values())
    parted = [
        max(abs(loss - ours) for ours in losses) > APART for loss, *losses in zip(one, *others, strict=True)
    ]
    return {"source": source, "measured": measured, "apart": parted.index(True) + 1 if any(parted) else None}


def _curves(language: str, folder: Path, name: str, runs: Mapping[str, Record], titles: Titles) -> str:
    """Draws the curves of runs into a file; returns what a page says to show it."""
    with mpl.rc_context():  # the Japanese font stays with the Japanese pictures
        course_lib.setup(language=language)
        drawn = picture({titles[run]: record for run, record in runs.items()})
    (folder / f"{name}.png").write_bytes(drawn.png)
    return _image(f"{name}.png", drawn.alt)


def _bars(
    folder: Path, heading: str, groups: Mapping[str, Record], group_titles: Titles, titles: Titles
) -> str:
    """Draws the parts of a step in groups of bars, into a file; returns what a page says to show it."""
    bars = [
        Bars(
            group_titles[group],
            tuple(Bar(title, record[part], f"{1e3 * record[part]:.2f} ms") for part, title in titles.items()),
        )
        for group, record in groups.items()
    ]
    drawn = framed(heading, [bars_drawing(bars)], bar_lines(bars))
    (folder / "step_parts.svg").write_text(drawn.svg, encoding="utf-8")
    return _image("step_parts.svg", _("; ").join(drawn.text.splitlines()))


def _image(file: str, alt: str) -> str:
    return f"```{{image}} {file}\n:alt: {alt}\n```"


def _support(name: str) -> dict[str, Any]:
    """Returns a table of what works, with the message of each error."""
    record = load(name)
    shown = table(record.support)
    errors = [
        (title(row), title(column), cell.message)
        for row, cells in record.support.items()
        for column, cell in cells.items()
        if cell.verdict == "error"
    ]
    return {"columns": shown.columns, "rows": shown.rows, "how": record.how, "errors": errors}
