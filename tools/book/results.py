"""What `make results` measured, drawn and as text, for the templates of the pages that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

import course_lib
from course_lib.i18n import _
from course_lib.measured import step_parts
from course_lib.measured.files import Record, load, names
from course_lib.measured.machine import sentences
from course_lib.measured.tables import breakable, table
from course_lib.measured.titles import title
from course_lib.measured.trainings import picture, spread

SCHEMES = ("imdb", "stand_in")  # the sets of reviews that they were trained on
QUANTITIES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")

Values = dict[str, Any]  # what a template reads, by the name that it has there


def measured_values(language: str, folder: Path) -> Values:
    """Draws the measurements into `folder`, their texts in `language`, and returns what to say about them."""
    with mpl.rc_context():  # the Japanese font stays with the Japanese pictures
        course_lib.setup(language=language)
        trainings = {name: record for name in names() if "runs" in (record := load(name))}
        return {
            "results": [_training(name, record, folder) for name, record in trainings.items()],
            "schemes": [_schemes(source, folder) for source in SCHEMES],
            "after_two_epochs": _after_two_epochs(),
            "exports": _exports(load("save_and_serve-export")),
            "step": _step_parts(folder),
            "keras": _support("keras_layouts-support"),
            "strategies": _support("strategies-support", breakable),  # its columns are wider than a page
        }


def _drawn(name: str, runs: Mapping[str, Record], folder: Path) -> Values:
    drawn = picture(runs)
    (folder / f"{name}.png").write_bytes(drawn.png)
    return {"picture": f"{name}.png", "alt": drawn.alt}


def _training(name: str, record: Record, folder: Path) -> Values:
    """Returns a training: for each epoch of its runs the spread of each quantity, and the restored models."""
    runs = {title(run): _epochs(seeds) for run, seeds in record.runs.items()}
    seeds = record.how.seeds.split(", ")
    restored = [
        {
            "seed": seed,
            "trained": f"{epochs[-1].test_accuracy:.4f}",
            "restored": f"{model.test_accuracy:.4f}",
            "otherwise": f"{model.otherwise:,}",
            "difference": f"{model.largest_difference:.1g}",
        }
        for run in record.runs.values()
        for seed, epochs, model in zip(seeds, run.epochs, run.get("restored", ()), strict=False)
    ]
    shown = {"name": name, "how": record.how, "runs": runs, "restored": restored}
    return shown | _drawn(name, record.runs, folder)


def _epochs(run: Record) -> list[dict[str, str]]:
    """Returns for each epoch the lowest and highest value of each quantity, such as "0.512–0.688"."""
    columns = [[f"{low:.3f}–{high:.3f}" for low, high in spread(run, quantity)] for quantity in QUANTITIES]
    return [dict(zip(QUANTITIES, row, strict=True)) for row in zip(*columns, strict=True)]


def _schemes(source: str, folder: Path) -> Values:
    """Returns how far each scheme is from one device, from equal values and from a checkpoint."""
    name = f"splitting_the_model-schemes_{source}"
    record = load(name)
    kinds = {
        kind: [
            _distance(title(scheme), steps, run)
            for scheme, run in record[kind].items()
            for steps in ("first", "whole")
            if steps in run or steps == "whole"
        ]
        for kind in ("equal", "continued")
    }
    one, *others = (run.losses for run in record.equal.values())
    apart = [
        max(abs(loss - ours) for ours in losses) > 2e-4 for loss, *losses in zip(one, *others, strict=True)
    ]
    first = {"apart": apart.index(True) + 1}  # the losses are stored with four digits
    return {"source": source, "kinds": kinds, "how": record.how} | first | _drawn(name, record.equal, folder)


def _after_two_epochs() -> dict[str, str]:
    """Returns test accuracies on real reviews, on one device and data-parallel."""
    runs = load("splitting_the_model-schemes_imdb").equal
    return {name: f"{runs[name].epochs[0][1].test_accuracy:.3f}" for name in ("one", "data")}


def _distance(scheme: str, steps: str, run: Record) -> dict[str, str]:
    """Returns a row: no figures for one device, with which the others are compared."""
    figures = dict.fromkeys(_FORMS, "")
    if steps in run:
        figures = {name: f"{run[steps][name]:{form}}" for name, form in _FORMS.items()}
    test_accuracy = "" if steps == "first" else f"{run.epochs[0][-1].test_accuracy:.3f}"
    return {"title": scheme, "steps": steps, "test_accuracy": test_accuracy, **figures}


_FORMS = {"loss": ".1e", "accuracy": ".3f", "weights": ".1e"}


def _exports(record: Record) -> Values:
    """Returns a row for the trained model, with which the others are compared, and one for each export."""
    rows = [
        {
            "title": title(name),
            "accuracy": f"{model.accuracy:.5f}",
            "otherwise": f"{model.otherwise:,}" if "otherwise" in model else "",
            "difference": f"{model.largest_difference:.1e}" if "otherwise" in model else "",
        }
        for name, model in record.models.items()
    ]
    return {"rows": rows, "how": record.how}


def _step_parts(folder: Path) -> Values:
    """Returns the parts of a step, a column for each scheme."""
    record = load("splitting_the_model-step_parts")
    drawn = step_parts.figure(record.step_parts)
    (folder / "step_parts.svg").write_text(drawn.svg, encoding="utf-8")
    columns = [_figures(parts) for parts in record.step_parts.values()]
    return {
        "picture": "step_parts.svg",
        "alt": _("; ").join(drawn.text.splitlines()),
        "machine": sentences(record.machine),
        "schemes": [title(f"{scheme} mesh") for scheme in record.step_parts],
        "rows": {name: [column[name] for column in columns] for name in columns[0]},
    }


def _figures(parts: Record) -> dict[str, str]:
    return {
        "packing": _milliseconds(parts.packing),
        "dispatch": _milliseconds(parts.tiny),
        "arithmetic": _milliseconds(parts.share - parts.tiny),
        "exchanges": _milliseconds(parts.exchanges),
        "step": _milliseconds(parts.step),
        "explained": f"{(parts.share + parts.exchanges) / parts.step:.0%}",
        "loop": _milliseconds(parts.loop),
        "num_collectives": str(parts.num_collectives),
        "payload_bytes": f"{parts.payload_bytes:,}",
    }


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"


def _support(name: str, shown_name: Callable[[str], str] = str) -> Values:
    """Returns a table of what works, its long names as they are shown, with the message of each error."""
    record = load(name)
    shown = table(record.support)
    rows = {shown_name(row): tuple(map(shown_name, texts)) for row, texts in shown.rows.items()}
    errors = [
        (title(row), title(column), cell.message)
        for row, cells in record.support.items()
        for column, cell in cells.items()
        if cell.verdict == "error"
    ]
    return {"columns": shown.columns, "rows": rows, "how": record.how, "errors": errors}
