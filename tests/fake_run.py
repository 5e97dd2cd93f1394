"""A training that trains nothing: the records are a fixed function of the step."""

from __future__ import annotations

import time
from collections.abc import Iterator

from course_lib.training.records import EpochRecord, History, StepRecord

STEPS_PER_EPOCH = 40


def step_record(step: int) -> StepRecord:
    loss = 0.2 + 0.6 * 0.99**step + 0.05 * (step % 7)
    return StepRecord(step, (step - 1) // STEPS_PER_EPOCH + 1, loss, 1 - loss / 2, 64 - step % 3, 0.01)


def epoch_record(epoch: int) -> EpochRecord:
    loss = 0.9 / epoch
    return EpochRecord(epoch, epoch * STEPS_PER_EPOCH, loss, 1 - loss / 2, loss + 0.05, 0.8, None)


def history(num_steps: int) -> History:
    return History(
        [step_record(step) for step in range(1, num_steps + 1)],
        [epoch_record(epoch) for epoch in range(1, num_steps // STEPS_PER_EPOCH + 1)],
    )


class FakeRun:
    """Yields the records of `history`, a step every few milliseconds, and can fail on request."""

    steps_per_epoch = STEPS_PER_EPOCH

    def __init__(
        self, epochs: int = 3, start_step: int = 0, seconds: float = 0.0, fail_at: int | None = None
    ) -> None:
        self.total_steps = epochs * STEPS_PER_EPOCH
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
            yield step_record(self._step)
            if self._step % STEPS_PER_EPOCH == 0:
                yield epoch_record(self._step // STEPS_PER_EPOCH)

    def close(self) -> None:
        self.closed_after = self._step
