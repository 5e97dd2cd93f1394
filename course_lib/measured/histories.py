"""Histories as JSON holds them: rounded, and without times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from course_lib.training.records import EpochRecord, History, StepRecord

_DIGITS = 4


def to_rows(history: History) -> dict[str, Any]:
    """Returns the records of whole epochs, as `of_rows` takes them."""
    steps, per_epoch = history.steps, history.epochs[0].step - history.steps[0].step + 1
    return {
        "batch_size": steps[0].examples,
        "last_batch_size": steps[per_epoch - 1].examples,
        "steps_per_epoch": per_epoch,
        "losses": [round(record.loss, _DIGITS) for record in steps],
        "accuracies": [round(record.accuracy, _DIGITS) for record in steps],
        "epochs": [asdict(epoch) for epoch in history.epochs],
    }


def of_rows(rows: Mapping[str, Any]) -> History:
    """Returns the records again; they may begin at a later epoch than the first."""
    epochs, per_epoch = [EpochRecord(**epoch) for epoch in rows["epochs"]], rows["steps_per_epoch"]
    before, size = epochs[0].step - per_epoch, rows["batch_size"]
    last = rows.get("last_batch_size", size)  # older files have whole batches only
    steps = [
        StepRecord(
            before + at,
            epochs[0].epoch + (at - 1) // per_epoch,
            loss,
            accuracy,
            size if at % per_epoch else last,
            0.0,
        )
        for at, (loss, accuracy) in enumerate(zip(rows["losses"], rows["accuracies"], strict=True), start=1)
    ]
    return History(steps, epochs)
