"""The work of a training: steps, the ends of epochs, checkpoints, and the way back to the last record."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.training.checkpoints import CheckpointFolder, restore
from course_lib.training.records import EpochRecord, Record, StepRecord
from course_lib.training.saved import Saved
from course_lib.training.settings import Settings
from course_lib.training.trainer import Batches, Sums, Trainer

# So many steps run in one call of TensorFlow: enough to make the cost of a call small, and few enough that
# a Stop button answers at once (chosen by trial).
STEPS_PER_CALL = 32


@dataclass(frozen=True)
class Progress:
    """Where a training is: what a checkpoint holds beside the variables.

    Attributes:
        step: the last step whose record was handed out.
        epoch: how many epochs have handed out their record.
        loss: the sum of the losses of the present epoch's examples so far.
        hits: how many of them were classified rightly.
    """

    step: int = 0
    epoch: int = 0
    loss: float = 0.0
    hits: float = 0.0


class Work:
    """Trains as its records are asked for, several steps ahead of them.

    Attributes:
        epochs: the number of epochs in all.
        order: which rows each step takes.
        progress: where the records that were handed out have come to.
    """

    def __init__(
        self,
        trainer: Trainer,
        train_set: Examples,
        test_set: Examples | None,
        settings: Settings,
        checkpoints: CheckpointFolder | None,
        *,
        start: Saved | None = None,
    ) -> None:
        """Restores the newest checkpoint, or else the one to start from, if there is one."""
        self._trainer, self._checkpoints = trainer, checkpoints
        self._train_set, self._test_set = train_set, test_set
        self.epochs = settings.epochs
        self.order = settings.order(len(self._train_set))
        self._undo: tuple[int, list[Any]] | None = None  # a step, and the state after it
        self._ready: tuple[int, Batches] | None = None  # a step, and the batches that come after it
        self.progress = self._resume(start)
        self._saved = self.progress

    def records(self) -> Generator[Record, None, None]:
        """Yields a record for each step and epoch that is still to come.

        Raises:
            CourseError: a loss or a value is not finite.
        """
        while self.progress.epoch < self.epochs:
            if self.progress.step < (self.progress.epoch + 1) * self.order.steps_per_epoch:
                yield from self._some_steps()
            else:
                yield self._finish_epoch()

    def settle(self) -> None:
        """Takes the model back to the last record that was handed out, and saves it there."""
        if self._undo is not None:
            first, state = self._undo
            self._trainer.set_state(state)
            if self.progress.step > first:
                self._run_steps(first, self.progress.step - first)
            self._undo = None
        if self._checkpoints is not None and self._saved != self.progress:
            self._save(self.progress)

    def _some_steps(self) -> Iterator[StepRecord]:
        first, num_steps = self.progress.step, self.order.steps_per_epoch
        count = min(STEPS_PER_CALL, num_steps - first % num_steps)
        self._undo = first, self._trainer.state()
        start = time.perf_counter()
        losses, hits = self._run_steps(first, count)
        seconds = (time.perf_counter() - start) / count
        for loss, hit in zip(losses[:count].tolist(), hits[:count].tolist(), strict=True):
            now, size = self.progress, self.order.batch_size
            if not math.isfinite(loss):
                raise self._diverged(_("The loss of step {step} is not a finite number.", step=now.step + 1))
            self.progress = Progress(now.step + 1, now.epoch, now.loss + loss, now.hits + hit)
            yield StepRecord(now.step + 1, now.epoch + 1, loss / size, hit / size, size, seconds)
        self._undo = None

    def _run_steps(self, first: int, count: int) -> tuple[Sums, Sums]:
        sums = self._trainer.steps(self._stack(first), count)
        self._stack(first + count)  # TensorFlow is still computing: meanwhile the next stack is made ready
        return sums()

    def _stack(self, first: int) -> Batches:
        """Returns the batches of the steps after `first`, on the devices."""
        if self._ready is None or self._ready[0] != first:
            num_batches = min(STEPS_PER_CALL, self.order.steps_per_epoch)
            stack = self.order.stack(self._train_set, first, num_batches)
            self._ready = first, self._trainer.send(*stack)
        return self._ready[1]

    def _finish_epoch(self) -> EpochRecord:
        now, examples = self.progress, self.order.examples_per_epoch
        self._undo = now.step, self._trainer.state()
        if not self._trainer.is_finite():
            raise self._diverged(
                _("After step {step} the model holds numbers that are not finite.", step=now.step)
            )
        self._trainer.end_epoch(self._stack(now.step))
        test_loss, test_accuracy = (
            (None, None) if self._test_set is None else self._trainer.evaluate(self._test_set)
        )
        following = Progress(now.step, now.epoch + 1)
        checkpoint = self._save(following)
        self.progress, self._undo = following, None
        train_loss, train_accuracy = now.loss / examples, now.hits / examples
        return EpochRecord(
            following.epoch, now.step, train_loss, train_accuracy, test_loss, test_accuracy, checkpoint
        )

    def _save(self, progress: Progress) -> str | None:
        if self._checkpoints is None:
            return None
        facts = {"progress": asdict(progress)}
        name = self._checkpoints.save(progress.step, facts, model=self._trainer.model)
        self._saved = progress
        return name

    def _resume(self, start: Saved | None) -> Progress:
        saved = start
        if self._checkpoints is not None:
            saved = self._checkpoints.latest() or start
        if saved is None:
            return Progress()
        restore(saved, model=self._trainer.model)
        return Progress(**saved.facts["progress"])

    def _diverged(self, problem: str) -> CourseError:
        """Leaves the model as it was before the call, sees to it that it is not saved, and says so."""
        if self._undo is not None:
            self._trainer.set_state(self._undo[1])
        self._undo, self._saved = None, self.progress
        return CourseError(
            problem,
            allowed=_("losses and values that are finite numbers"),
            cure=_("Make the model anew and train it with a smaller learning rate."),
        )
