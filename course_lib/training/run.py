"""Runs: they yield records, can be stopped after any of them, and resume to the bit."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from course_lib.data.examples import Examples
from course_lib.models.sentiment import MLP
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.records import Record
from course_lib.training.saved import Saved
from course_lib.training.settings import Settings
from course_lib.training.trainer import Trainer
from course_lib.training.work import Work

Folder = CheckpointFolder | str | os.PathLike[str]


def train(
    model: MLP,
    train_set: Examples,
    test_set: Examples | None = None,
    *,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 1e-2,
    seed: int = 0,
    checkpoints: Folder | None = None,
    start: Saved | None = None,
) -> TrainingRun:
    """Returns a run that trains as its records are asked for, from the newest checkpoint if there is one.

    A checkpoint is taken for one of this training: with other rows, other batches or another seed it would be
    another training that goes on. The plan may be another.

    Each epoch shuffles the rows, and leaves the last ones out, fewer than a batch. The sum of the losses of a
    batch is minimised by plain gradient descent.

    Args:
        model: the model, on any plan. A checkpoint gives it new values.
        train_set: what to train on.
        test_set: what to evaluate on after each epoch: held-out examples, such as a validation split while
            settings are chosen, and the test split once they are.
        epochs: the number of epochs in all, those before a resumption included.
        batch_size: the number of examples in a global batch.
        learning_rate: 1e-2 fits a summed loss over 64 rows.
        seed: of the order of the rows.
        checkpoints: a folder, in which to save after each epoch and at `close`.
        start: a checkpoint to go on from where the folder holds none, of any plan.

    Raises:
        CourseError: a setting cannot be used, or the examples do not fill a batch.
    """
    if isinstance(checkpoints, (str, os.PathLike)):
        checkpoints = CheckpointFolder(checkpoints)
    settings = Settings(epochs, batch_size, seed)
    trainer = Trainer(model, learning_rate)
    return TrainingRun(Work(trainer, train_set, test_set, settings, checkpoints, start=start))


class TrainingRun:
    """Iterates over a training's records; the training happens as they are asked for.

    Steps run several at a time, but `close` goes back to the last record that was handed out. It may be
    called from any thread, waits for the call under way, and is what leaving a `with` block does.

    Attributes:
        total_steps: the number of steps of all the epochs.
        start_step: the number of steps that were already done: above 0 when a checkpoint was found.
        steps_per_epoch: the number of batches in an epoch.
    """

    def __init__(self, work: Work) -> None:
        """Takes the work, which has restored the newest checkpoint, if there is one."""
        self._work = work
        self._records = work.records()
        self._lock = threading.Lock()
        self.steps_per_epoch = work.order.steps_per_epoch
        self.total_steps = work.epochs * self.steps_per_epoch
        self.start_step = self.step

    @property
    def step(self) -> int:
        """The last step whose record was handed out."""
        return self._work.progress.step

    def __iter__(self) -> Iterator[Record]:
        """Returns the run, which hands out the records that are still to come; none once it has ended."""
        return self

    def __next__(self) -> Record:
        """Returns the next record."""
        with self._lock:
            try:
                return next(self._records)
            except KeyboardInterrupt:
                self._end()
                raise

    def __enter__(self) -> TrainingRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the training; the model, and a checkpoint if there is a folder, are at `step` exactly."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._records.close()
        self._work.settle()
