"""A training that trains nothing: the records are a fixed function of the step."""

from __future__ import annotations

import time
from collections.abc import Iterator

from course_lib.watch.records import History, Record

STEPS_PER_EPOCH = 40


def step_record(step: int) -> Record:
    loss = 0.2 + 0.6 * 0.99**step + 0.05 * (step % 7)
    return {"step": step, "epoch": (step - 1) // STEPS_PER_EPOCH + 1, "loss": loss, "accuracy": 1 - loss / 2}


def epoch_record(epoch: int) -> Record:
    return {
        "step": epoch * STEPS_PER_EPOCH,
        "epoch": epoch,
        "test_loss": 0.9 / epoch + 0.05,
        "test_accuracy": 0.8,
    }


def history(num_steps: int) -> History:
    return History(
        [step_record(step) for step in range(1, num_steps + 1)],
        [epoch_record(epoch) for epoch in range(1, num_steps // STEPS_PER_EPOCH + 1)],
    )


def training(
    num_steps: int = 120,
    begin_after: int = 0,
    seconds: float = 0.0,
    fail_at: int = 0,
    saved: list[int] | None = None,
) -> Iterator[Record]:
    """Yields the records of `history`, a step every so many seconds; can fail; says where it is closed."""
    step = begin_after
    try:
        for step in range(begin_after + 1, num_steps + 1):
            time.sleep(seconds)
            if step == fail_at:
                raise RuntimeError("the disk is full")
            yield step_record(step)
            if step % STEPS_PER_EPOCH == 0:
                yield epoch_record(step // STEPS_PER_EPOCH)
    finally:
        if saved is not None:
            saved.append(step)
