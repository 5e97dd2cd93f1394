"""The runs of a training lab: how each trains on the kernel's loop, what is kept of it, how they differ."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from course_lib.i18n import _
from course_lib.pictures.curves import QUANTITIES, Quantity
from course_lib.runtime import start_tensorflow
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
    learning_rate: float = 3e-3
    epochs: int = 3
    start: LabRun | None = None


@dataclass
class LabRun:
    """One training in the lab.

    Attributes:
        number: the number of the run.
        setting: what was asked for.
        folder: where its checkpoints are; beside it lies its log.
        last_step: the number of the step that it was asked to end with.
        history: its records, from its start on.
        status: how far it has come.
        error: why it failed.
        seconds: how long each step took.
        saved_step: the step of the checkpoint in its folder, when it began or a new lab found it.
    """

    number: int
    setting: Setting
    folder: Path
    last_step: int
    history: History = field(default_factory=History)
    status: Status = "preparing"
    error: str = ""
    seconds: list[float] = field(default_factory=list)
    saved_step: int = 0

    @property
    def step(self) -> int:
        """The last step that it has done."""
        return max(self.history.last_step, self.saved_step)

    @property
    def name(self) -> str:
        """What it is called."""
        return _("run {number}", number=self.number)

    @property
    def at_step(self) -> str:
        """The same with its last step: what its checkpoint is called."""
        return _("{run}, step {step}", run=self.name, step=self.step)

    @property
    def log(self) -> Path:
        """The file with what the reader chose, in its first line, and a line for each record."""
        return self.folder.with_suffix(".jsonl")

    @property
    def trains(self) -> bool:
        """Whether it has neither ended nor failed."""
        return self.status in ("preparing", "training")


async def follow(run: LabRun, records: Generator[Any], show: Callable[[], None]) -> None:
    """Trains a run to its end or until its records are closed, and lets the kernel do all else between steps.

    Args:
        run: what to train; its records, its status and its error are filled in, and its log goes on.
        records: what trains as its records are asked for.
        show: shows how far the run has come; called now and then.
    """
    pace = Pace()
    with _kept_error(run), run.log.open("a", buffering=1) as log:
        begin = time.perf_counter()
        for record in records:
            run.seconds.append(time.perf_counter() - begin)
            run.history.add(record)
            log.write(json.dumps(run.history.steps[-1]) + "\n")
            run.status = "training"
            pace.show(show)
            await asyncio.sleep(0)
            begin = time.perf_counter()
    if run.trains:
        run.status = "finished" if run.step == run.last_step else "stopped"
    show()


def stop(run: LabRun, records: Generator[Any]) -> None:
    """Ends a run between two steps; its training saves before it ends."""
    with _kept_error(run):
        records.close()


@contextlib.contextmanager
def _kept_error(run: LabRun) -> Iterator[None]:
    """Keeps what goes wrong in the run: printed or raised, it would appear in whatever cell runs."""
    try:
        yield
    except Exception as error:
        run.status, run.error = "failed", f"{type(error).__name__}: {error}"


def logged(log: Path) -> list[Any]:
    """Returns the lines of a log, without one that a killed kernel did not write to its end."""
    with log.open() as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def whole_step(folder: Path) -> int:
    """Returns the step of the newest whole checkpoint in a folder, 0 if there is none.

    From then on `tf.train.latest_checkpoint` names it: a kernel that was killed while it saved may have left
    the name of one that is not whole.
    """
    whole = sorted(folder.glob("ckpt-*.index"), key=lambda index: int(index.stem.removeprefix("ckpt-")))
    if not whole:
        return 0
    tf, newest = start_tensorflow(), whole[-1].with_suffix("")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{newest.name}"\n')
    return int(tf.train.load_checkpoint(str(newest)).get_tensor("step/.ATTRIBUTES/VARIABLE_VALUE"))


def starts_of(runs: Sequence[LabRun]) -> dict[str, LabRun]:
    """Returns the runs that left a checkpoint, by a name of each, oldest runs first."""
    return {str(run.number): run for run in runs if run.status in ("finished", "stopped") and run.step}


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
