"""The runs of a training lab: how each trains in a thread, what it recorded, and how far runs differ."""

from __future__ import annotations

import itertools
import shutil
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.errors import CourseError
from course_lib.pictures.curves import QUANTITIES, Quantity
from course_lib.training.records import History
from course_lib.turns import turns
from course_lib.watch.curves import last_step
from course_lib.watch.live import Pace, Run, collect
from lessons.lesson_05_model_and_spatial.lab_setting import Setting


class Status(Enum):
    """How far a run of the lab has come."""

    PREPARING = "preparing"
    TRAINING = "training"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass
class LabRun:
    """One training in the lab; another thread fills it.

    Attributes:
        number: the number of the run.
        setting: what was asked for.
        folder: where its checkpoints are.
        history: its records, from its start on.
        status: how far it has come.
        total_steps: the number of its last step, once that is known.
        error: why it failed, in the reader's language.
        stop: ends it after the step under way.
    """

    number: int
    setting: Setting
    folder: Path
    history: History = field(default_factory=History)
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
        later = [each for each in seconds if each != seconds[0]]  # a call's steps share one time
        return statistics.median(later) if later else None


def train(run: LabRun, subject: Mapping[str, Any], show: Callable[[], None]) -> None:
    """Trains a run to its end, or until it is stopped; what goes wrong is kept in the run.

    Nothing is printed or raised: it would appear in whatever cell runs.

    Args:
        run: what to train; its records, its status and its error are filled in.
        subject: what `begin` is given beside the setting.
        show: shows how far the run has come; called now and then.
    """
    pace = Pace()

    def after_each() -> None:
        run.status = Status.TRAINING
        if pace.is_due():
            pace.time(show)

    try:
        with turns.of_training():
            training = begin(run.setting, run.folder, **subject)
        run.total_steps = training.total_steps
        turn = turns.of_training
        collect(training, iter(training), run.history, run.stop, after_each=after_each, turn=turn)
        run.status = Status.FINISHED if run.step == run.total_steps else Status.STOPPED
    except CourseError as error:
        run.status, run.error = Status.FAILED, str(error)
    except Exception as error:
        run.status, run.error = Status.FAILED, f"{type(error).__name__}: {error}"


def begin(setting: Setting, folder: Path, *, model: Any, values: Any, train_set: Any, test_set: Any) -> Run:
    """Returns the run that a setting asks for, with its checkpoints in `folder`.

    Where it goes on from a checkpoint, a copy of that one is the first in the folder: what others still
    train, or removed, does not matter to it.

    Raises:
        CourseError: the devices, the checkpoint or the examples do not fit.
    """
    folder.mkdir(parents=True)
    if setting.start is not None:
        saved = setting.start.saved
        shutil.copytree(saved.path, folder / saved.name)
    run: Run = import_module("course_lib.training.run").train(
        model(values, setting.plan),
        train_set,
        test_set,
        epochs=setting.epochs,
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
        checkpoints=folder,
    )
    return run


class Difference(NamedTuple):
    """The largest difference between two runs in the same step.

    Attributes:
        value: how large it is.
        quantity: "loss" or "accuracy".
        step: where.
        runs: the numbers of the two runs.
    """

    value: float
    quantity: Quantity
    step: int
    runs: tuple[int, int]


def largest_differences(runs: Sequence[LabRun]) -> list[Difference]:
    """Returns the largest difference in loss and in accuracy between runs that did the same steps.

    Two runs do the same step where batch size and learning rate are equal: then the rows and, but for
    rounding, the weights are the same, wherever the runs began.
    """
    alike = [
        (first, second)
        for first, second in itertools.combinations(runs, 2)
        if _decides_a_step(first.setting) == _decides_a_step(second.setting)
    ]
    found = [[each for pair in alike for each in _differences(*pair, quantity)] for quantity in QUANTITIES]
    return [max(each) for each in found if each]


def _decides_a_step(setting: Setting) -> tuple[int, float]:
    return setting.batch_size, setting.learning_rate


def _differences(first: LabRun, second: LabRun, quantity: Quantity) -> list[Difference]:
    """Returns the differences of two runs in the steps that both did."""
    ours, theirs = (
        {record.step: getattr(record, quantity) for record in tuple(run.history.steps)}
        for run in (first, second)
    )
    runs = first.number, second.number
    return [
        Difference(abs(ours[step] - theirs[step]), quantity, step, runs) for step in ours if step in theirs
    ]
