"""Histories of trainings as a file holds them, rounded and without times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from course_lib.measured.files import Record
from course_lib.training.records import History

_DIGITS = 4


def run_of(histories: Sequence[History], **further: Any) -> Record:
    """Returns one setting: the steps of its first seed, and the whole epochs of each.

    Args:
        histories: of each seed.
        further: what else there is to say of it.
    """
    first, steps = histories[0], histories[0].steps
    per_epoch = first.epochs[0].step - steps[0].step + 1
    return Record(
        batch_size=steps[0].examples,
        last_batch_size=steps[per_epoch - 1].examples,
        steps_per_epoch=per_epoch,
        losses=[round(record.loss, _DIGITS) for record in steps],
        accuracies=[round(record.accuracy, _DIGITS) for record in steps],
        epochs=[[Record(asdict(epoch)) for epoch in history.epochs] for history in histories],
        **further,
    )
