"""A training that trains nothing: the records are a fixed function of the step."""

from __future__ import annotations

import time
from collections.abc import Iterator

from course_lib.training.records import EpochRecord, History, StepRecord


def step_record(step: int, steps_per_epoch: int = 40) -> StepRecord:
    loss = 0.2 + 0.6 * 0.99**step + 0.05 * (step % 7)
    return StepRecord(step, (step - 1) // steps_per_epoch + 1, loss, 1 - loss / 2, 64 - step % 3, 0.01)


def epoch_record(epoch: int, steps_per_epoch: int = 40) -> EpochRecord:
    loss = 0.9 / epoch
    return EpochRecord(epoch, epoch * steps_per_epoch, loss, 1 - loss / 2, loss + 0.05, 0.8, None)


def history(num_steps: int, steps_per_epoch: int = 40) -> History:
    return History(
        [step_record(step, steps_per_epoch) for step in range(1, num_steps + 1)],
        [epoch_record(epoch, steps_per_epoch) for epoch in range(1, num_steps // steps_per_epoch + 1)],
    )


class FakeRun:
    """Yields the records of `history`, a step every few milliseconds, and can fail on request."""

    def __init__(
        self,
        epochs: int = 3,
        steps_per_epoch: int = 40,
        start_step: int = 0,
        seconds: float = 0.0,
        fail_at: int | None = None,
    ) -> None:
        self.total_steps = epochs * steps_per_epoch
        self.steps_per_epoch = steps_per_epoch
        self.start_step = start_step
        self.closed_after: int | None = None
        self._seconds = seconds
        self._fail_at = fail_at
        self._step = start_step

    def __iter__(self) -> Iterator[StepRecord | EpochRecord]:
        while self._step < self.total_steps:
            time.sleep(self._seconds)
            if self._step + 1 == self._fail_at:
                raise RuntimeError("the disk is full")
            self._step += 1
            yield step_record(self._step, self.steps_per_epoch)
            if self._step % self.steps_per_epoch == 0:
                yield epoch_record(self._step // self.steps_per_epoch, self.steps_per_epoch)

    def close(self) -> None:
        self.closed_after = self._step
