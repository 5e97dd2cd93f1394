"""The runs of a training lab: how each trains on the kernel's loop, what it recorded, how far runs differ."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from course_lib.i18n import _
from course_lib.pictures.curves import QUANTITIES, Quantity
from course_lib.specs.plan import Plan
from course_lib.watch.loop import Pace
from course_lib.watch.records import History

Status = Literal["preparing", "training", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class Setting:
    """One training that the reader asked for.

    Attributes:
        plan: how the model and the batch are laid out; None for one device.
        batch_size: the number of examples in a global batch.
        learning_rate: the learning rate.
        epochs: the number of epochs in all.
        start: the run from whose checkpoint it goes on; None for the initial values.
    """

    plan: Plan | None
    batch_size: int = 64
    learning_rate: float = 1e-2
    epochs: int = 3
    start: LabRun | None = None


@dataclass
class LabRun:
    """One training in the lab.

    Attributes:
        number: the number of the run.
        setting: what was asked for.
        folder: where its checkpoint is.
        last_step: the number of the step that it was asked to end with.
        history: its records, from its start on.
        status: how far it has come.
        error: why it failed.
        stops: whether it is to end after the step under way.
        seconds: how long each step took.
    """

    number: int
    setting: Setting
    folder: Path
    last_step: int
    history: History = field(default_factory=History)
    status: Status = "preparing"
    error: str = ""
    stops: bool = False
    seconds: list[float] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The last step that it has done."""
        begun_after = self.setting.start.step if self.setting.start else 0
        return self.history.last_step or begun_after

    @property
    def name(self) -> str:
        """What it is called."""
        return _("run {number}", number=self.number)

    @property
    def at_step(self) -> str:
        """The same with its last step: what its checkpoint is called."""
        return _("{run}, step {step}", run=self.name, step=self.step)

    @property
    def trains(self) -> bool:
        """Whether it has neither ended nor failed."""
        return self.status in ("preparing", "training")


async def follow(run: LabRun, records: Generator[Any], show: Callable[[], None]) -> None:
    """Trains a run to its end or until it is stopped, and lets the kernel do all else between two steps.

    What goes wrong is kept in the run: printed or raised, it would appear in whatever cell runs.

    Args:
        run: what to train; its records, its status and its error are filled in.
        records: what trains as its records are asked for.
        show: shows how far the run has come; called now and then.
    """
    pace = Pace()
    try:
        begin = time.perf_counter()
        for record in records:
            run.seconds.append(time.perf_counter() - begin)
            run.history.add(record)
            run.status = "training"
            pace.show(show)
            await asyncio.sleep(0)
            if run.stops:
                break
            begin = time.perf_counter()
        records.close()
        run.status = "finished" if run.step == run.last_step else "stopped"
    except Exception as error:
        run.status, run.error = "failed", f"{type(error).__name__}: {error}"
    show()


def starts_of(runs: Sequence[LabRun]) -> dict[str, LabRun]:
    """Returns the runs that left a checkpoint, by a name of each, oldest runs first."""
    return {str(run.number): run for run in runs if run.status in ("finished", "stopped")}


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
        {record["step"]: record[quantity] for record in run.history.steps} for run in (first, second)
    )
    numbers = first.number, second.number
    shared = of_first.keys() & of_second.keys()
    return [(abs(of_first[step] - of_second[step]), quantity, step, numbers) for step in shared]
