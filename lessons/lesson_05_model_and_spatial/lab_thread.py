"""How a run of the training lab trains: in a thread, in turns with the cells, without a word printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.training.records import Record
from course_lib.turns import turns
from course_lib.watch.live import Pace, Run, collect
from lessons.lesson_05_model_and_spatial.lab_runs import LabRun, Status
from lessons.lesson_05_model_and_spatial.lab_setting import Setting

Begin = Callable[[Setting, Path], Run]


def train(run: LabRun, folder: Path, begin: Begin, show: Callable[[], None]) -> None:
    """Trains a run to its end, or until it is stopped; what goes wrong is kept in the run.

    Nothing is printed or raised: it would appear in whatever cell runs.

    Args:
        run: what to train; its records, its status and its error are filled in.
        folder: where its checkpoints belong.
        begin: makes the training.
        show: shows how far the run has come; called now and then.
    """
    pace = Pace()

    def after_each() -> None:
        run.status = Status.TRAINING
        if pace.is_due():
            pace.time(show)

    try:
        with turns.of_training():
            training = _InTurns(begin(run.setting, folder))
        run.total_steps = training.total_steps
        collect(training, iter(training), run.history, run.stop, after_each)
        run.status = Status.FINISHED if run.step == run.total_steps else Status.STOPPED
    except CourseError as error:
        run.status, run.error = Status.FAILED, str(error)
    except Exception as error:
        run.status, run.error = Status.FAILED, f"{type(error).__name__}: {error}"


class _InTurns:
    """A training that uses the devices only when nobody else does: `live.Run`, in turns with the cells."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.total_steps, self.start_step = run.total_steps, run.start_step
        self.steps_per_epoch = run.steps_per_epoch

    @property
    def finished(self) -> bool:
        """Whether it has handed out its last record."""
        return self._run.finished

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._run.closed

    def __iter__(self) -> Iterator[Record]:
        """Trains as the records are asked for, and takes a turn for each."""
        records = iter(self._run)
        while True:
            with turns.of_training():
                record = next(records, None)
            if record is None:
                return
            yield record

    def close(self) -> None:
        """Ends training early, when it is its turn."""
        with turns.of_training():
            self._run.close()
