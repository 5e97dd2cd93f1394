"""Trainings that were measured, as records and as curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.i18n import _, labelled
from course_lib.measured.files import Record
from course_lib.pictures.curves import Panels, Picture
from course_lib.watch.curves import curves, splits_of, summary
from course_lib.watch.records import History


def history(run: Record) -> History:
    """Returns the records of a run's first seed; the first may be of a later epoch."""
    epochs, per_epoch = run.epochs[0], run.steps_per_epoch
    before = epochs[0].step - per_epoch
    steps: list[Mapping[str, Any]] = [
        {
            "step": before + at + 1,
            "epoch": epochs[0].epoch + at // per_epoch,
            "loss": loss,
            "accuracy": accuracy,
        }
        for at, (loss, accuracy) in enumerate(zip(run.losses, run.accuracies, strict=True))
    ]
    return History(steps, epochs)


def picture(runs: Mapping[str, Record]) -> Picture:
    """Returns the curves of several runs' first seeds in one picture, in the reader's language."""
    histories = {name: history(run) for name, run in runs.items()}
    num_steps = max(each.last_step for each in histories.values())
    panels = Panels(tuple(histories), num_steps, splits_of(histories.values()))
    panels.show([curves(each) for each in histories.values()])
    described = _("; ").join(labelled(name, summary(each)) for name, each in histories.items())
    return Picture(
        png=panels.png(),
        alt=_("Curves of loss and accuracy of several runs. {described}.", described=described),
        text=_("Picture: loss and accuracy over the steps, of {runs}.", runs=_(", ").join(histories)),
    )
