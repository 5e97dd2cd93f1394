"""What training yields: a record a step, a record an epoch, and the history that they add up to."""

from __future__ import annotations

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
        test_loss: the mean loss per test example after the epoch; None without a test set.
        test_accuracy: the share of test examples classified rightly; None without a test set.
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

    def add(self, record: Record) -> None:
        """Puts a record behind the others of its kind."""
        if isinstance(record, EpochRecord):
            self.epochs.append(record)
        else:
            self.steps.append(record)
