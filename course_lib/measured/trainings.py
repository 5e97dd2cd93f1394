"""Trainings that were measured: their records and pictures, and what several seeds gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.i18n import _, num_columns, padded
from course_lib.measured.files import Record
from course_lib.measured.titles import title
from course_lib.pictures.curves import Picture
from course_lib.watch.curves import training_curves
from course_lib.watch.records import History


def history(run: Record) -> History:
    """Returns the records of a run's first seed; the first may be of a later epoch."""
    epochs, per_epoch = run.epochs[0], run.steps_per_epoch
    before = epochs[0].step - per_epoch
    measured = enumerate(zip(run.losses, run.accuracies, strict=True))
    steps: list[Mapping[str, Any]] = [
        {
            "step": before + at + 1,
            "epoch": epochs[0].epoch + at // per_epoch,
            "loss": loss,
            "accuracy": accuracy,
        }
        for at, (loss, accuracy) in measured
    ]
    return History(steps, epochs)


def spread(run: Record, quantity: str) -> list[tuple[float, float]]:
    """Returns, for each epoch, the least and the greatest value over the seeds.

    Args:
        run: what the seeds gave.
        quantity: what an evaluation measured, such as "test_accuracy".
    """
    values = [[epoch[quantity] for epoch in seed] for seed in run.epochs]
    return [(min(of_epoch), max(of_epoch)) for of_epoch in zip(*values, strict=True)]


def picture(runs: Mapping[str, Record]) -> Picture:
    """Returns the first seed's training curves of all runs in one picture, in the reader's language."""
    return training_curves({title(name): history(run) for name, run in runs.items()})


def accuracies(runs: Mapping[str, Record]) -> str:
    """Returns the test accuracies after each epoch, the lowest and the highest of the seeds, as text."""
    spreads = {title(name): spread(run, "test_accuracy") for name, run in runs.items()}
    epochs = range(1, 1 + max(map(len, spreads.values())))
    cells = [[_("epoch {epoch}", epoch=epoch) for epoch in epochs]]
    cells += [[f"{low:.3f}–{high:.3f}" for low, high in epochs] for epochs in spreads.values()]
    width = max(num_columns(cell) for row in cells for cell in row)
    lines = ["  ".join(padded(cell, width, to_the_right=True) for cell in row) for row in cells]
    named = [f"{line}   {name}".rstrip() for line, name in zip(lines, ["", *spreads], strict=True)]
    return "\n".join([_("Test accuracies, the lowest and the highest over the seeds"), *named])


def restored(runs: Mapping[str, Record]) -> str:
    """Returns the last test accuracies, and those of the models restored without a strategy, as text."""
    lines = [_("Test accuracies at the end, the lowest and the highest over the seeds")]
    for run in runs.values():
        low, high = spread(run, "test_accuracy")[-1]
        lines.append(f"{low:.3f}–{high:.3f}   " + _("trained under the strategy"))
        shares = [model.test_accuracy for model in run.restored]
        answered = _(
            "restored without one (answered otherwise: {otherwise}; largest difference: {difference})",
            otherwise=f"{max(model.otherwise for model in run.restored):,}",
            difference=f"{max(model.largest_difference for model in run.restored):.1g}",
        )
        lines.append(f"{min(shares):.3f}–{max(shares):.3f}   {answered}")
    return "\n".join(lines)


def exports(models: Mapping[str, Record]) -> str:
    """Returns accuracies and differences of a trained model and its exports, a line each, as text."""
    lines = [_("Accuracy, reviews answered otherwise, largest difference of a probability")]
    for name, model in models.items():
        compared = " " * 18
        if "otherwise" in model:  # not with itself
            compared = f"{model.otherwise:7,} {model.largest_difference:10.1e}"
        lines.append(f"{model.accuracy:.3f} {compared}  {title(name)}")
    return "\n".join(lines)
