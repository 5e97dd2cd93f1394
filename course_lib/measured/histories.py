"""Histories as JSON holds them: rounded, and without times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from course_lib.training.records import EpochRecord, History, StepRecord

_DIGITS = 4


def to_rows(history: History) -> dict[str, Any]:
    """Returns the records of a history whose epochs are whole, as `of_rows` takes them."""
    steps, epochs = history.steps, history.epochs
    return {
        "batch_size": steps[0].examples,
        "steps_per_epoch": len(steps) // len(epochs),
        "losses": [round(record.loss, _DIGITS) for record in steps],
        "accuracies": [round(record.accuracy, _DIGITS) for record in steps],
        "epochs": [asdict(epoch) for epoch in epochs],
    }


def of_rows(rows: Mapping[str, Any]) -> History:
    """Returns the records again; of their times none were kept."""
    epochs = [EpochRecord(**epoch) for epoch in rows["epochs"]]
    before = epochs[-1].step - len(rows["losses"])  # where the history continues another
    first_epoch = epochs[0].epoch
    steps = [
        StepRecord(
            before + 1 + at,
            first_epoch + at // rows["steps_per_epoch"],
            loss,
            accuracy,
            rows["batch_size"],
            0.0,
        )
        for at, (loss, accuracy) in enumerate(zip(rows["losses"], rows["accuracies"], strict=True))
    ]
    return History(steps, epochs)
