"""The trainings that `make results` measured, drawn and tabled for the pages that show them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

import course_lib
from course_lib.measured import results

QUANTITIES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


@dataclass(frozen=True)
class ShownResult:
    """Trainings as the pages show them.

    Attributes:
        name: what was measured, such as "04_imdb".
        how: how it was obtained, a value for each name.
        picture: the name of the picture's file.
        alt: what the picture shows, in the page's language.
        runs: by the run's name, for each epoch the spread of each quantity over the seeds, as text.
    """

    name: str
    how: dict[str, str]
    picture: str
    alt: str
    runs: dict[str, list[dict[str, str]]]


def write_results(language: str, folder: Path) -> list[ShownResult]:
    """Draws each measurement into `folder`, its texts in `language`, and returns what to say about it."""
    shown = []
    with mpl.rc_context():  # the Japanese font stays with the Japanese pictures
        course_lib.setup(language=language)
        for name in results.names():
            measured = results.load(name)
            picture = results.picture(measured)
            (folder / f"{name}.png").write_bytes(picture.png)
            runs = {results.title(run): spreads(seeded) for run, seeded in measured.runs.items()}
            shown.append(ShownResult(name, dict(measured.how), f"{name}.png", picture.alt, runs))
    return shown


def spreads(run: results.SeededRun) -> list[dict[str, str]]:
    """Returns for each epoch the lowest and highest value of each quantity, such as "0.512–0.688"."""
    columns = [[f"{low:.3f}–{high:.3f}" for low, high in run.spread(quantity)] for quantity in QUANTITIES]
    return [dict(zip(QUANTITIES, row, strict=True)) for row in zip(*columns, strict=True)]
