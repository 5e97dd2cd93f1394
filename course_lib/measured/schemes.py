"""The three schemes beside one device, as `make results` trained them, for lesson 05 and the book."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from course_lib.errors import one_of
from course_lib.i18n import _, ngettext
from course_lib.measured.histories import of_rows, to_rows
from course_lib.pictures.arranging import Drawing, beside, lines_of_text, stacked, titled
from course_lib.pictures.curves import Curve, Picture
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.overlay import Overlaid, overlay_drawing, swatch
from course_lib.training.records import History
from course_lib.watch.curves import training_curves

IMDB, STAND_IN = SOURCES = ("imdb", "stand_in")
ONE_DEVICE = "one"  # the run that the others are compared with

_FOLDER = files("course_lib") / "measured"
_KINDS = ("equal", "continued")
_WINDOW = 10  # steps of which a picture of differences shows the largest: it has no room for every step
_APART = 1e-3  # a loss, that far from another, has left it: records are rounded to a tenth of this


@dataclass(frozen=True)
class Difference:
    """How far a run is from the one on one device, at most, over the same steps.

    Attributes:
        loss: of the mean loss of a step's batch.
        accuracy: of the share of a step's batch that was classified rightly.
        weights: of any number in any variable, after the last of these steps.
    """

    loss: float
    accuracy: float
    weights: float


@dataclass(frozen=True)
class SchemeRun:
    """One training.

    Attributes:
        history: its records, without times.
        first: how far it is from one device over its first 20 steps; None for one device.
        whole: how far it is over all of its steps; None for one device.
    """

    history: History
    first: Difference | None = None
    whole: Difference | None = None


@dataclass(frozen=True)
class SchemesMeasured:
    """One device and the three schemes, on one set of reviews. Each run has the same batches.

    Attributes:
        how: the circumstances, a value for each name: the command, the data, versions.
        equal: by "one", "data", "model" and "spatial", what equal initial values gave.
        continued: the same, where each run continued the checkpoint after a data-parallel epoch.
    """

    how: Mapping[str, str]
    equal: Mapping[str, SchemeRun]
    continued: Mapping[str, SchemeRun]


def name_of(source: str) -> str:
    """Returns what the measurement on a set of reviews is called: "05_schemes_imdb" for "imdb"."""
    return f"05_schemes_{source}"


def sources() -> tuple[str, ...]:
    """Returns on which sets of reviews the schemes were trained; nothing where nothing was."""
    return tuple(source for source in SOURCES if (_FOLDER / f"{name_of(source)}.json").is_file())


def load(source: str) -> SchemesMeasured:
    """Returns what was measured on a set of reviews, "imdb" or "stand_in".

    Raises:
        CourseError: nothing was.
    """
    one_of(
        source,
        sources(),
        _("There are no results called {name!r}.", name=source),
        cure=_("Choose one of these, or measure anew with make results."),
    )
    content = json.loads((_FOLDER / f"{name_of(source)}.json").read_text(encoding="utf-8"))
    equal, continued = ({scheme: _of_json(rows) for scheme, rows in content[kind].items()} for kind in _KINDS)
    return SchemesMeasured(content["how"], equal, continued)


def save(measured: SchemesMeasured, source: str, folder: Path) -> Path:
    """Writes what was measured to `folder` and returns the file."""
    runs = {
        kind: {scheme: _to_json(run) for scheme, run in getattr(measured, kind).items()} for kind in _KINDS
    }
    path = folder / f"{name_of(source)}.json"
    content = {"how": dict(measured.how), **runs}
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return path


def title(scheme: str) -> str:
    """Returns what a run is called in the reader's language."""
    titles = {
        ONE_DEVICE: _("one device"),
        "data": _("data parallel"),
        "model": _("model parallel"),
        "spatial": _("spatial parallel"),
    }
    return titles[scheme]


def picture(runs: Mapping[str, SchemeRun]) -> Picture:
    """Returns the curves of runs over each other, in the reader's language."""
    return training_curves({title(scheme): run.history for scheme, run in runs.items()})


def differences(runs: Mapping[str, SchemeRun]) -> str:
    """Returns the largest differences between each run and that on one device, a line each, as text."""
    lines = [_("Largest differences from one device: loss of a step, accuracy of a step, weights")]
    for scheme, run in runs.items():
        if run.first is not None and run.whole is not None:
            steps = len(run.history.steps)
            lines += [
                _figures(run.first) + _("{scheme}, the first 20 steps", scheme=title(scheme)),
                _figures(run.whole)
                + ngettext(
                    "{scheme}, {count} step", "{scheme}, all {count} steps", steps, scheme=title(scheme)
                ),
            ]
    return "\n".join(lines)


def loss_differences(runs: Mapping[str, SchemeRun]) -> Figure:
    """Returns a picture of how far the loss of a step lies from one device, in the reader's language."""
    one = runs[ONE_DEVICE].history.steps
    gaps = {
        scheme: [abs(ours.loss - theirs.loss) for ours, theirs in zip(run.history.steps, one, strict=True)]
        for scheme, run in runs.items()
        if scheme != ONE_DEVICE
    }
    heading = ngettext(
        "Distance of the loss from one device: the largest in {count} step",
        "Distance of the loss from one device: the largest in {count} steps",
        _WINDOW,
    )
    steps = [record.step for record in one]
    told = [_gap_told(title(scheme), steps, of_scheme) for scheme, of_scheme in gaps.items()]
    return framed(heading, [titled(heading, _overlaid(steps, gaps)), _legend(gaps)], told)


def _overlaid(steps: Sequence[int], gaps: Mapping[str, Sequence[float]]) -> Drawing:
    ends = range(_WINDOW, len(steps) + 1, _WINDOW)
    at = tuple(steps[end - 1] for end in ends)
    lines = [
        Overlaid(style, (Curve("loss", "train", at, tuple(max(each[end - _WINDOW : end]) for end in ends)),))
        for style, each in enumerate(gaps.values(), start=1)
    ]
    return overlay_drawing(lines, "loss", steps[-1], _("step"))


def _legend(schemes: Iterable[str]) -> Drawing:
    """Returns the lines' names; the colours are those of `picture`, where one device has the first."""
    lines = [
        beside([swatch(style), lines_of_text([title(scheme)], size=12, max_width=300)], 8)
        for style, scheme in enumerate(schemes, start=1)
    ]
    return stacked(lines, 4)


def _gap_told(scheme: str, steps: Sequence[int], gaps: Sequence[float]) -> str:
    largest = max(gaps)
    values = {"scheme": scheme, "largest": f"{largest:.2g}", "step": steps[gaps.index(largest)]}
    apart = next((step for step, gap in zip(steps, gaps, strict=True) if gap > _APART), None)
    if apart is None:
        return _("{scheme}: at most {largest}, in step {step}", **values)
    return _(
        "{scheme}: above {limit} first in step {apart}; at most {largest}, in step {step}",
        limit=_APART,
        apart=apart,
        **values,
    )


def _figures(difference: Difference) -> str:
    return f"{difference.loss:9.1e} {difference.accuracy:8.4f} {difference.weights:9.1e}   "


def _to_json(run: SchemeRun) -> dict[str, Any]:
    compared = {
        which: {name: float(f"{value:.3g}") for name, value in asdict(difference).items()}
        for which, difference in (("first", run.first), ("whole", run.whole))
        if difference is not None
    }
    return to_rows(run.history) | compared


def _of_json(rows: Mapping[str, Any]) -> SchemeRun:
    compared = {which: Difference(**rows[which]) for which in ("first", "whole") if which in rows}
    return SchemeRun(of_rows(rows), **compared)
