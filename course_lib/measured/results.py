"""Trainings that `make results` measured, kept with the library so that lessons and book can show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _, num_columns, padded
from course_lib.measured.histories import of_rows, to_rows
from course_lib.pictures.curves import Picture
from course_lib.training.records import EpochRecord, History
from course_lib.watch.curves import training_curves

_FOLDER = resources.files("course_lib") / "measured"
_RUNS = "runs"  # what tells these files from those with other measurements


@dataclass(frozen=True)
class Restored:
    """What a trained model's last checkpoint gave where it was read without a strategy.

    Attributes:
        test_accuracy: the share of the test examples that it classified rightly.
        otherwise: how many it classified in another way than the trained model.
        largest_difference: of a probability, from that of the trained model.
    """

    test_accuracy: float
    otherwise: int
    largest_difference: float


@dataclass(frozen=True)
class SeededRun:
    """One setting, trained from several seeds.

    Attributes:
        curves: the records of the first seed, without times: what a picture shows.
        epochs: the epochs of each seed, the first one's too, `[seeds, epochs]`.
        restored: of each seed, what its model gave once restored; empty where none was.
    """

    curves: History
    epochs: tuple[tuple[EpochRecord, ...], ...]
    restored: tuple[Restored, ...] = ()

    def spread(self, quantity: str) -> tuple[tuple[float, float], ...]:
        """Returns, for each epoch, the least and the greatest value over the seeds.

        Args:
            quantity: a field of `EpochRecord`, such as "test_accuracy".
        """
        values = [[getattr(epoch, quantity) for epoch in seed] for seed in self.epochs]
        return tuple((min(of_epoch), max(of_epoch)) for of_epoch in zip(*values, strict=True))


@dataclass(frozen=True)
class Measured:
    """Training runs, and how they were obtained.

    Attributes:
        name: what was measured, such as "04_imdb".
        how: the circumstances, a value for each name: the command, the data, versions, seeds.
        runs: what each setting gave, by its name, such as "tutorial" or "ours".
    """

    name: str
    how: Mapping[str, str]
    runs: Mapping[str, SeededRun]


def names() -> tuple[str, ...]:
    """Returns what there are training runs of; nothing where nothing was measured."""
    entries = _FOLDER.iterdir() if _FOLDER.is_dir() else ()
    files = [entry for entry in entries if entry.name.endswith(".json")]
    return tuple(sorted(file.name[:-5] for file in files if _RUNS in json.loads(file.read_text("utf-8"))))


def load(name: str) -> Measured:
    """Returns what was measured under that name.

    Raises:
        CourseError: there is nothing of that name.
    """
    if name not in names():
        raise CourseError(
            _("There are no results called {name!r}.", name=name),
            allowed=", ".join(names()),
            cure=_("Choose one of these, or measure anew with make results."),
        )
    content = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Measured(name, content["how"], {run: _run(rows) for run, rows in content[_RUNS].items()})


def save(measured: Measured, folder: Path) -> Path:
    """Writes what was measured to `folder` and returns the file."""
    content = {
        "how": dict(measured.how),
        _RUNS: {name: _rows(run) for name, run in measured.runs.items()},
    }
    path = folder / f"{measured.name}.json"
    path.write_text(json.dumps(content, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
    return path


def picture(measured: Measured) -> Picture:
    """Returns the first seed's training curves of all runs in one picture, in the reader's language."""
    return training_curves({title(name): run.curves for name, run in measured.runs.items()})


def table(measured: Measured) -> str:
    """Returns the test accuracies after each epoch, the lowest and the highest of the seeds, as text."""
    runs = {title(name): run.spread("test_accuracy") for name, run in measured.runs.items()}
    epochs = range(1, 1 + max(map(len, runs.values())))
    cells = [[_("epoch {epoch}", epoch=epoch) for epoch in epochs]]
    cells += [[f"{low:.3f}–{high:.3f}" for low, high in spread] for spread in runs.values()]
    width = max(num_columns(cell) for row in cells for cell in row)
    lines = ["  ".join(padded(cell, width, to_the_right=True) for cell in row) for row in cells]
    named = [f"{line}   {name}" for line, name in zip(lines, ["", *runs], strict=True)]
    return "\n".join(
        [_("Test accuracies, the lowest and the highest over the seeds"), *map(str.rstrip, named)]
    )


def together(runs: Sequence[SeededRun]) -> SeededRun:
    """Returns the runs of several seeds as one; the curves are the first one's."""
    epochs = tuple(seed for run in runs for seed in run.epochs)
    return SeededRun(runs[0].curves, epochs, tuple(each for run in runs for each in run.restored))


def restored_table(measured: Measured) -> str:
    """Returns the last test accuracies, and those of the models restored without a strategy, as text."""
    lines = [_("Test accuracies at the end, the lowest and the highest over the seeds")]
    for run in measured.runs.values():
        low, high = run.spread("test_accuracy")[-1]
        lines.append(f"{low:.3f}–{high:.3f}   " + _("trained under the strategy"))
        accuracies = [each.test_accuracy for each in run.restored]
        answered = _(
            "restored without one (answered otherwise: {otherwise}; largest difference: {difference})",
            otherwise=f"{max(each.otherwise for each in run.restored):,}",
            difference=f"{max(each.largest_difference for each in run.restored):.1g}",
        )
        lines.append(f"{min(accuracies):.3f}–{max(accuracies):.3f}   {answered}")
    return "\n".join(lines)


def title(run: str) -> str:
    """Returns what a run is called in the reader's language; its own name where it has no other."""
    titles = {
        "tutorial": _("settings of TensorFlow's tutorial"),
        "he": _("He's initial values"),
        "unit": _("unit rows"),
        "ours": _("unit rows, He's initial values"),
        "adam": _("Adam"),
    }
    return titles.get(run, run)


def _rows(run: SeededRun) -> dict[str, Any]:
    restored = {"restored": [asdict(each) for each in run.restored]} if run.restored else {}
    epochs = {"epochs": [[asdict(epoch) for epoch in seed] for seed in run.epochs]}
    return to_rows(run.curves) | epochs | restored


def _run(rows: Mapping[str, Any]) -> SeededRun:
    epochs = tuple(tuple(EpochRecord(**epoch) for epoch in seed) for seed in rows["epochs"])
    restored = tuple(Restored(**each) for each in rows.get("restored", ()))
    return SeededRun(of_rows({**rows, "epochs": rows["epochs"][0]}), epochs, restored)
