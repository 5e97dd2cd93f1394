"""What training yields: a record a step, a record an epoch, the history that they add up to, and times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StepRecord:
    """What one training step measured.

    Attributes:
        step: the number of the step, counted from 1 over the whole training.
        epoch: the epoch that the step belongs to, counted from 1.
        loss: the mean loss per example of the step's batch, before the step's update.
        accuracy: the share of the batch that was classified rightly, before the step's update.
        examples: the number of examples in the (global) batch.
        seconds: the time that the step took.
    """

    step: int
    epoch: int
    loss: float
    accuracy: float
    examples: int
    seconds: float


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch measured, and where it was saved.

    Attributes:
        epoch: the number of the epoch, counted from 1.
        step: the last step of the epoch.
        train_loss: the mean loss per training example over the epoch's steps.
        train_accuracy: the share of training examples classified rightly over the epoch's steps.
        test_loss: the mean loss per held-out example after the epoch; None where none were given.
        test_accuracy: the share of held-out examples classified rightly; None where none were given.
        checkpoint: the name of the checkpoint written after the epoch; None without a folder for them.
    """

    epoch: int
    step: int
    train_loss: float
    train_accuracy: float
    test_loss: float | None
    test_accuracy: float | None
    checkpoint: str | None


Record = StepRecord | EpochRecord


@dataclass(frozen=True)
class StepTimes:
    """How long a training step takes with one global batch, on one device and on eight.

    Attributes:
        batch_size: the number of examples in the global batch.
        one_device_seconds: the time of a step where one device computes all of them.
        eight_devices_seconds: the time of a step where each of eight devices computes an eighth.
    """

    batch_size: int
    one_device_seconds: float
    eight_devices_seconds: float

    @property
    def speedup(self) -> float:
        """The time on one device divided by the time on eight: above 1 where eight are faster."""
        return self.one_device_seconds / self.eight_devices_seconds


@dataclass
class History:
    """The records of one training run, in the order in which they came.

    Attributes:
        steps: a record for each step.
        epochs: a record for each epoch that was finished.
        stopped: whether the reader stopped the run before its last step.
    """

    steps: list[StepRecord] = field(default_factory=list)
    epochs: list[EpochRecord] = field(default_factory=list)
    stopped: bool = False

    @classmethod
    def of(cls, records: Iterable[Record]) -> History:
        """Returns the history of a run, which trains to its end meanwhile."""
        history = cls()
        for record in records:
            history.add(record)
        return history

    def add(self, record: Record) -> None:
        """Puts a record behind the others of its kind."""
        if isinstance(record, EpochRecord):
            self.epochs.append(record)
        else:
            self.steps.append(record)
