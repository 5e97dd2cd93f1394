"""What `make results` measured on real data, kept with the library so that lessons and book can show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.curves import Picture
from course_lib.training.records import EpochRecord, History, StepRecord
from course_lib.watch.curves import training_curves

_FOLDER = files("course_lib") / "measured"
_DIGITS = 4


@dataclass(frozen=True)
class Measured:
    """Training runs on real data, and how they were obtained.

    Attributes:
        name: what was measured, such as "03_imdb".
        how: the circumstances, a value for each name: the command, the data, versions, devices.
        histories: the records of each run, by its name, such as "tutorial" or "ours". They hold no times.
    """

    name: str
    how: Mapping[str, str]
    histories: Mapping[str, History]


def names() -> tuple[str, ...]:
    """Returns what there are results of."""
    return tuple(sorted(entry.name[:-5] for entry in _FOLDER.iterdir() if entry.name.endswith(".json")))


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
    return Measured(name, content["how"], {run: _history(rows) for run, rows in content["runs"].items()})


def save(measured: Measured, folder: Path) -> Path:
    """Writes what was measured to `folder` and returns the file."""
    content = {
        "how": dict(measured.how),
        "runs": {run: _rows(history) for run, history in measured.histories.items()},
    }
    path = folder / f"{measured.name}.json"
    path.write_text(json.dumps(content, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
    return path


def picture(measured: Measured) -> Picture:
    """Returns the training curves of all runs in one picture, named in the reader's language."""
    return training_curves({title(run): history for run, history in measured.histories.items()})


def title(run: str) -> str:
    """Returns what a run is called in the reader's language; its own name where it has no other."""
    titles = {
        "tutorial": _("settings of TensorFlow's tutorial"),
        "he": _("He's initial values"),
        "unit": _("unit rows"),
        "ours": _("unit rows, He's initial values"),
    }
    return titles.get(run, run)


def _rows(history: History) -> dict[str, Any]:
    return {
        "batch_size": history.steps[0].examples,
        "steps_per_epoch": history.epochs[0].step,
        "losses": [round(record.loss, _DIGITS) for record in history.steps],
        "accuracies": [round(record.accuracy, _DIGITS) for record in history.steps],
        "epochs": [asdict(record) for record in history.epochs],
    }


def _history(rows: Mapping[str, Any]) -> History:
    steps = [
        StepRecord(step, 1 + (step - 1) // rows["steps_per_epoch"], loss, accuracy, rows["batch_size"], 0.0)
        for step, (loss, accuracy) in enumerate(zip(rows["losses"], rows["accuracies"], strict=True), start=1)
    ]
    return History(steps, [EpochRecord(**epoch) for epoch in rows["epochs"]])
