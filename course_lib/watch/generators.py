"""Generators that train: what a reader writes, as a run that can be watched."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _
from course_lib.training.records import EpochRecord, Record, StepRecord

_STEP_KEYS = ("step", "epoch", "loss", "accuracy")
_EPOCH_KEYS = ("step", "epoch", "test_loss", "test_accuracy")


class RunOfRecords:
    """A generator of dictionaries as a run: `live.watch` makes it, and asks for the first record at once.

    Attributes:
        total_steps: the number of the training's last step.
        start_step: the step after which the generator began: above 0 where it goes on from a checkpoint.
        steps_per_epoch: the number of steps in an epoch.
    """

    def __init__(self, records: Any, total_steps: int, epochs: int) -> None:
        """Asks for the first record, which says where the training begins.

        Raises:
            CourseError: no generator, no number of steps or of epochs, or a record that lacks a key.
        """
        if not isinstance(records, Generator):
            raise CourseError(
                _("{given} does not train.", given=type(records).__name__),
                allowed=_("a run, or a generator of records"),
                cure=_("Write a function that yields a dictionary for each step, and call it."),
            )
        self.total_steps = whole_number(
            total_steps,
            _("A training of {given!r} steps cannot be watched.", given=total_steps),
            least=1,
            cure=_("Say how many steps the training has: live.watch(records, steps=...)."),
        )
        self.steps_per_epoch = self.total_steps // whole_number(
            epochs,
            _("epochs={epochs!r} does not fit steps={steps}.", epochs=epochs, steps=total_steps),
            least=1,
            most=self.total_steps,
            cure=_("Say how many epochs the training has: live.watch(records, steps=..., epochs=...)."),
        )
        self._records = records
        self._first = [_record(given) for given in itertools.islice(records, 1)]
        self.start_step = _step_before(self._first[0]) if self._first else total_steps

    def __iter__(self) -> Iterator[Record]:
        """Trains, and hands out each record."""
        yield from self._first
        yield from map(_record, self._records)

    def close(self) -> None:
        """Ends the training where it stands."""
        self._records.close()


def _step_before(record: Record) -> int:
    return record.step - 1 if isinstance(record, StepRecord) else record.step


def _record(given: Mapping[str, Any]) -> Record:
    evaluated = "test_loss" in given
    for key in _EPOCH_KEYS if evaluated else _STEP_KEYS:
        one_of(
            key,
            given,
            _("A record lacks {key!r}.", key=key),
            cure=_("Yield a dictionary with {keys} for each step.", keys=", ".join(_STEP_KEYS)),
        )
    step, epoch = int(given["step"]), int(given["epoch"])
    if evaluated:
        loss, accuracy = float(given["test_loss"]), float(given["test_accuracy"])
        return EpochRecord(epoch, step, float("nan"), float("nan"), loss, accuracy, checkpoint=None)
    return StepRecord(step, epoch, float(given["loss"]), float(given["accuracy"]), examples=1, seconds=0.0)
