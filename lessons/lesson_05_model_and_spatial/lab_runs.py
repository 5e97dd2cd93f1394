"""The runs of a training lab: what each was asked for, what it recorded, and how far runs differ."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np

from course_lib.pictures.curves import QUANTITIES, Quantity
from course_lib.training.records import History
from course_lib.watch.curves import last_step
from lessons.lesson_05_model_and_spatial.lab_setting import Setting


class Status(Enum):
    """How far a run of the lab has come."""

    PREPARING = "preparing"
    TRAINING = "training"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    RECORDED = "recorded"


@dataclass
class LabRun:
    """One training in the lab; another thread fills it.

    Attributes:
        number: the number of the run.
        setting: what was asked for.
        history: its records, from its start on.
        folder: where its checkpoints are; None for a recorded one.
        status: how far it has come.
        total_steps: the number of its last step, once that is known.
        error: why it failed, in the reader's language.
        stop: ends it after the step under way.
    """

    number: int
    setting: Setting
    history: History = field(default_factory=History)
    folder: Path | None = None
    status: Status = Status.PREPARING
    total_steps: int = 0
    error: str = ""
    stop: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def step(self) -> int:
        """The last step that it has done."""
        start = self.setting.start
        return max(last_step(self.history), start.saved.step if start else 0)

    @property
    def trains(self) -> bool:
        """Whether it has neither ended nor failed."""
        return self.status in (Status.PREPARING, Status.TRAINING)

    @property
    def step_seconds(self) -> float | None:
        """The median time of a step; None while there are only those of the first call, which compiles."""
        seconds = [record.seconds for record in tuple(self.history.steps)]
        after_the_first_call = [
            each for each in seconds if each != seconds[0]
        ]  # a call's steps share one time
        return statistics.median(after_the_first_call) if after_the_first_call else None


@dataclass(frozen=True)
class Difference:
    """The largest difference between two runs in the same step.

    Attributes:
        quantity: "loss" or "accuracy".
        value: how large it is.
        step: where.
        runs: the numbers of the two runs.
    """

    quantity: Quantity
    value: float
    step: int
    runs: tuple[int, int]


def largest_differences(runs: Sequence[LabRun]) -> list[Difference]:
    """Returns the largest difference in loss and in accuracy between runs that did the same steps.

    Two runs do the same step where batch size and learning rate are equal: then the rows and, but for
    rounding, the weights are the same, wherever the runs began.
    """
    found = []
    for first, second in itertools.combinations(runs, 2):
        if first.setting.steps_alike == second.setting.steps_alike:
            found += _differences(first, second)
    of_a_kind = ([each for each in found if each.quantity == quantity] for quantity in QUANTITIES)
    return [max(each, key=lambda difference: difference.value) for each in of_a_kind if each]


def _differences(first: LabRun, second: LabRun) -> list[Difference]:
    left, right = tuple(first.history.steps), tuple(second.history.steps)
    steps, *places = np.intersect1d(
        np.array([record.step for record in left], np.int64),
        np.array([record.step for record in right], np.int64),
        assume_unique=True,
        return_indices=True,
    )
    if not len(steps):
        return []
    found = []
    for quantity in QUANTITIES:
        values = (
            np.array([getattr(records[at], quantity) for at in those])
            for records, those in zip((left, right), places, strict=True)
        )
        gaps = np.abs(np.subtract(*values))
        at = int(gaps.argmax())
        found.append(Difference(quantity, float(gaps[at]), int(steps[at]), (first.number, second.number)))
    return found
