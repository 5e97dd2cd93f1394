"""What `make results` measured, drawn and tabled for the pages that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

import course_lib
from course_lib.i18n import _, set_language
from course_lib.measured import export, keras_support, results, schemes, step_parts, strategy_support
from course_lib.measured.step_parts import StepParts
from course_lib.measured.support import breakable

QUANTITIES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


@dataclass(frozen=True)
class ShownRestored:
    """A model beside its last checkpoint, restored without a strategy, as a row of the page's table.

    Attributes:
        seed: the random seed.
        trained: the test accuracy under the strategy.
        restored: that without one.
        otherwise: how many images the restored model answers otherwise.
        difference: the largest difference of a probability.
    """

    seed: str
    trained: str
    restored: str
    otherwise: str
    difference: str


@dataclass(frozen=True)
class ShownResult:
    """Trainings as the pages show them.

    Attributes:
        name: what was measured, such as "04_imdb".
        how: how it was obtained, a value for each name.
        picture: the name of the picture's file.
        alt: what the picture shows, in the page's language.
        runs: by the run's name, for each epoch the spread of each quantity over the seeds, as text.
        restored: a row for each seed whose model was restored; empty where none was.
    """

    name: str
    how: dict[str, str]
    picture: str
    alt: str
    runs: dict[str, list[dict[str, str]]]
    restored: list[ShownRestored]


@dataclass(frozen=True)
class ShownRun:
    """A scheme beside one device, as text.

    Attributes:
        title: the scheme, in the page's language.
        steps: over which steps, "first" or "whole".
        loss: the largest difference in the loss of a step.
        accuracy: the largest difference in the accuracy of a step.
        weights: the largest difference in a weight after these steps.
        test_accuracy: the test accuracy at the end; nothing for the first steps.
    """

    title: str
    steps: str
    loss: str
    accuracy: str
    weights: str
    test_accuracy: str


@dataclass(frozen=True)
class ShownSchemes:
    """The schemes on one set of reviews, as the pages show them.

    Attributes:
        source: the reviews, "imdb" or "stand_in".
        picture: the name of the picture's file.
        alt: what the picture shows, in the page's language.
        kinds: the rows of the table by "equal" and "continued".
    """

    source: str
    picture: str
    alt: str
    kinds: dict[str, list[ShownRun]]


@dataclass(frozen=True)
class ShownStep:
    """The parts of a step, as the page shows them.

    Attributes:
        picture: the name of the picture's file.
        alt: what the picture says, in the page's language.
        machine: where it was measured.
        schemes: the scheme of each column.
        rows: the figures of each row, by its name.
    """

    picture: str
    alt: str
    machine: str
    schemes: list[str]
    rows: dict[str, list[str]]


@dataclass(frozen=True)
class ShownExport:
    """The trained model, or an export of it, as a row of the page's table.

    Attributes:
        title: which, in the page's language.
        accuracy: on the test reviews.
        otherwise: how many reviews it answers otherwise than the trained model; nothing for that itself.
        difference: the largest difference of a probability; nothing for the trained model itself.
    """

    title: str
    accuracy: str
    otherwise: str = ""
    difference: str = ""


@dataclass(frozen=True)
class ShownSupport:
    """A table of what works, as the page shows it.

    Attributes:
        columns: the title of each column.
        rows: the entries of each row, by its title.
        how: how it was obtained, a value for each name.
        errors: of each error that is shown: the titles of row and column, and its message.
    """

    columns: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]
    how: dict[str, str]
    errors: tuple[tuple[str, str, str], ...] = ()


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
            how, restored = dict(measured.how), shown_restored(measured)
            shown.append(ShownResult(name, how, f"{name}.png", picture.alt, runs, restored))
    return shown


def shown_restored(measured: results.Measured) -> list[ShownRestored]:
    """Returns a row for each model that was restored."""
    seeds = measured.how.get("seeds", "").split(", ")
    return [
        ShownRestored(
            seed,
            f"{epochs[-1].test_accuracy:.4f}",
            f"{each.test_accuracy:.4f}",
            f"{each.otherwise:,}",
            f"{each.largest_difference:.1g}",
        )
        for run in measured.runs.values()
        for seed, epochs, each in zip(seeds, run.epochs, run.restored, strict=False)
    ]


def spreads(run: results.SeededRun) -> list[dict[str, str]]:
    """Returns for each epoch the lowest and highest value of each quantity, such as "0.512–0.688"."""
    columns = [[f"{low:.3f}–{high:.3f}" for low, high in run.spread(quantity)] for quantity in QUANTITIES]
    return [dict(zip(QUANTITIES, row, strict=True)) for row in zip(*columns, strict=True)]


def write_schemes(language: str, folder: Path) -> list[ShownSchemes]:
    """Draws what was measured of the schemes into `folder`, and returns what to say about it."""
    shown = []
    with mpl.rc_context():
        course_lib.setup(language=language)
        for source in schemes.sources():
            measured, name = schemes.load(source), schemes.name_of(source)
            picture = schemes.picture(measured.equal)
            (folder / f"{name}.png").write_bytes(picture.png)
            kinds = {"equal": _shown(measured.equal), "continued": _shown(measured.continued)}
            shown.append(ShownSchemes(source, f"{name}.png", picture.alt, kinds))
    return shown


def _shown(runs: Mapping[str, schemes.SchemeRun]) -> list[ShownRun]:
    return [
        ShownRun(
            schemes.title(scheme),
            steps,
            *_figures(difference),
            "" if steps == "first" else f"{run.history.epochs[-1].test_accuracy:.3f}",
        )
        for scheme, run in runs.items()
        for steps, difference in (("first", run.first), ("whole", run.whole))
        if steps == "whole" or difference is not None
    ]


def _figures(difference: schemes.Difference | None) -> tuple[str, str, str]:
    """Returns the differences as text; dashes for the run that the others are compared with."""
    if difference is None:
        return "–", "–", "–"
    return f"{difference.loss:.1e}", f"{difference.accuracy:.3f}", f"{difference.weights:.1e}"


def shown_exports(language: str) -> list[ShownExport]:
    """Returns what to say about the trained model and its exports; nothing where nothing was measured."""
    measured = export.recorded()
    if measured is None:
        return []
    set_language(language)
    trained = ShownExport(export.trained_title(), f"{measured.trained_accuracy:.5f}")
    exports = [
        ShownExport(
            export.title(kind),
            f"{each.accuracy:.5f}",
            f"{each.otherwise:,}",
            f"{each.largest_difference:.1e}",
        )
        for kind, each in measured.exports.items()
    ]
    return [trained, *exports]


def write_step_parts(language: str, folder: Path) -> ShownStep | None:
    """Draws the parts of a step into `folder`, and returns what to say about them; None if there are none."""
    recorded = step_parts.recorded()
    if recorded is None:
        return None
    set_language(language)
    figure = step_parts.figure(recorded.schemes)
    (folder / f"{step_parts.NAME}.svg").write_text(figure.svg, encoding="utf-8")
    parts = recorded.schemes.values()
    rows = {name: [form(each) for each in parts] for name, form in _ROWS.items()}
    return ShownStep(
        f"{step_parts.NAME}.svg",
        _("; ").join(figure.text.splitlines()),
        recorded.machine.sentences(),
        [step_parts.title(scheme) for scheme in recorded.schemes],
        rows,
    )


def keras_table(language: str) -> ShownSupport | None:
    """Returns what each Keras distributes, its texts in `language`; None where it was not measured."""
    recorded = keras_support.recorded()
    if recorded is None:
        return None
    set_language(language)
    table = keras_support.table(recorded)
    return ShownSupport(table.columns, dict(table.rows), dict(recorded.how))


def strategy_table(language: str) -> ShownSupport | None:
    """Returns which strategy works with which API, in `language`; None where it was not measured."""
    recorded = strategy_support.recorded()
    if recorded is None:
        return None
    set_language(language)
    table = strategy_support.table(recorded)
    rows = {breakable(title): tuple(map(breakable, texts)) for title, texts in table.rows.items()}
    errors = tuple(strategy_support.errors(recorded))
    return ShownSupport(table.columns, rows, dict(recorded.how), errors)


def _milliseconds(name: str) -> Callable[[StepParts], str]:
    return lambda parts: f"{1e3 * getattr(parts, name):.2f}"


_ROWS: dict[str, Callable[[StepParts], str]] = {
    **{name: _milliseconds(name) for name in ("packing", "dispatch", "arithmetic", "exchanges")},
    "step": _milliseconds("step"),
    "explained": lambda parts: f"{parts.explained:.0%}",
    "loop": _milliseconds("loop"),
    "num_collectives": lambda parts: str(parts.num_collectives),
    "payload_bytes": lambda parts: f"{parts.payload_bytes:,}",
}
