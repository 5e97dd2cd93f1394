"""The runs of a training lab: how each trains in a thread, what it recorded, and how far runs differ."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from course_lib.errors import CourseError
from course_lib.pictures.curves import QUANTITIES, Quantity
from course_lib.training.records import History
from course_lib.training.saved import whole_in
from course_lib.turns import turns
from course_lib.watch.curves import last_step
from course_lib.watch.live import Pace, Run, collect
from lessons.layouts.splitting_the_model.lab_setting import Setting, Start

Status = Literal["preparing", "training", "finished", "stopped", "failed"]


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
    status: Status = "preparing"
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
        return self.status in ("preparing", "training")

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
        run.status = "training"
        if pace.is_due():
            pace.time(show)

    try:
        with turns.of_training():
            training = begin(run.setting, run.folder, **subject)
        run.total_steps = training.total_steps
        turn = turns.of_training
        collect(training, iter(training), run.history, run.stop, after_each=after_each, turn=turn)
        run.status = "finished" if run.step == run.total_steps else "stopped"
    except CourseError as error:
        run.status, run.error = "failed", str(error)
    except Exception as error:
        run.status, run.error = "failed", f"{type(error).__name__}: {error}"


def begin(setting: Setting, folder: Path, *, model: Any, values: Any, train_set: Any, test_set: Any) -> Run:
    """Returns the run that a setting asks for, with its checkpoints in `folder`.

    Raises:
        CourseError: the devices, the checkpoint or the examples do not fit.
    """
    from course_lib.training.run import train

    return train(
        model(values, setting.plan),
        train_set,
        test_set,
        epochs=setting.epochs,
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
        checkpoints=folder,
        start=None if setting.start is None else setting.start.saved,
    )


def starts_of(runs: Sequence[LabRun]) -> dict[str, Start]:
    """Returns the whole checkpoints that runs left, by a name of each, oldest runs first."""
    return {
        f"{run.folder.name}/{saved.name}": Start(run.number, saved, run.setting)
        for run in runs
        for saved in whole_in(run.folder)
    }


# How large a difference is, in loss or accuracy, in which step, and between the runs of which numbers.
Difference = tuple[float, Quantity, int, tuple[int, int]]


def largest_differences(runs: Sequence[LabRun]) -> list[Difference]:
    """Returns the largest difference in loss and in accuracy between runs that did the same steps.

    Two runs do the same step where batch size and learning rate are equal: then the rows and, but for
    rounding, the weights are the same, wherever the runs began.
    """
    pairs = list(itertools.combinations(runs, 2))
    found = [[each for pair in pairs for each in _differences(*pair, quantity)] for quantity in QUANTITIES]
    return [max(each) for each in found if each]


def _differences(first: LabRun, second: LabRun, quantity: Quantity) -> list[Difference]:
    ours, theirs = first.setting, second.setting
    if (ours.batch_size, ours.learning_rate) != (theirs.batch_size, theirs.learning_rate):
        return []
    of_first, of_second = (
        {record.step: getattr(record, quantity) for record in tuple(run.history.steps)}
        for run in (first, second)
    )
    numbers = first.number, second.number
    shared = of_first.keys() & of_second.keys()
    return [(abs(of_first[step] - of_second[step]), quantity, step, numbers) for step in shared]
