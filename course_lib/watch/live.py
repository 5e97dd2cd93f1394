"""Live training: curves, a progress bar and a Stop button in the cell that trains, which stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from typing import Any, Protocol

from course_lib.i18n import _
from course_lib.training.records import EpochRecord, History, Record
from course_lib.watch import trains_now
from course_lib.watch.curves import last_step
from course_lib.watch.generators import RunOfRecords
from course_lib.watch.views import NotebookView, TerminalView, View

# Showing may cost 5 % of the time at most, even if training stood still meanwhile, as it does when both
# need Python's one interpreter lock. Half of that is for refreshes: each is followed by a pause of 40 times
# what it took. The rest is for the view's beginning and end, a tenth of a second in a run of seconds. What it
# took is the time that this thread used the processor: while it waits for the lock, training runs.
_PAUSE_PER_REFRESH = 40
_SHORTEST_PAUSE_SECONDS = 0.2  # more than five pictures a second help nobody
_TICK_SECONDS = 0.05
_FIRST_RESPONSIVE_IPYKERNEL = 7  # the first to handle messages while a cell awaits


class Run(Protocol):
    """What can be watched: an iterator over the records of a training, such as `training.train` returns."""

    total_steps: int
    start_step: int
    steps_per_epoch: int

    def __iter__(self) -> Iterator[Record]:
        """Trains, step by step, as the records are asked for."""

    def close(self) -> None:
        """Ends training early and leaves a checkpoint from which it can go on."""


async def watch(
    run: Run | Iterator[Any], history: History | None = None, *, steps: int = 0, epochs: int = 1
) -> History:
    """Returns the records of `run`, trained to its end or until it is stopped, with live curves meanwhile.

    A run may be any generator that trains and yields a dictionary for each step, with `step`, `epoch`, `loss`
    and `accuracy` (per example, of its batch), and one for each epoch, with `step`, `epoch`, `test_loss` and
    `test_accuracy`. Steps and epochs are counted from 1 over the whole training. To stop it is to close it:
    what stands behind `finally` in the generator runs.

    In a notebook, write `history = await live.watch(run)`. The Stop button, the interrupt key and Ctrl-C end
    training after the step that is under way; the run then leaves a checkpoint, and the cells below go on.
    Outside a notebook a line is printed for each epoch.

    Args:
        run: the training, not yet begun. One that a checkpoint found at its last step has nothing to do.
        steps: for a generator, the number of the training's last step.
        epochs: for a generator, the number of epochs, each of a step or more.
        history: the records from before, where `run` goes on from a checkpoint: the curves continue them.
            Records of steps that `run` does again are dropped.

    Raises:
        CourseError: a lab trains, or `run` is no training of so many steps and epochs.
        Exception: whatever training raised, with its own traceback; its `history` holds the records so far.
    """
    watched: Any = run if hasattr(run, "total_steps") else RunOfRecords(run, steps, epochs)
    with trains_now.watching(watched):
        return await _watch(watched, _records_before(watched, history))


async def _watch(run: Run, history: History) -> History:
    records = iter(run)
    stop = threading.Event()
    view = _view(run, history, stop)
    training = asyncio.ensure_future(asyncio.to_thread(collect, run, records, history, stop))
    try:
        await _refresh_until_done(training, view, stop)
        ended_early = max(last_step(history), run.start_step) < run.total_steps
        history.stopped = ended_early and training.exception() is None
    finally:
        stop.set()  # where the view itself failed, training must not go on unseen
        while not training.done():
            await asyncio.wait({training})
        view.finish()
    training.result()
    return history


def _records_before(run: Run, history: History | None) -> History:
    before = history or History()
    return History(
        steps=[record for record in before.steps if record.step <= run.start_step],
        epochs=[record for record in before.epochs if record.step <= run.start_step],
    )


def collect(
    run: Run,
    records: Iterator[Record],
    history: History,
    stop: threading.Event,
    *,
    after_each: Callable[[], None] = lambda: None,
    turn: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Trains, and collects the records in `history`, until `stop` is set: for a thread of its own.

    Args:
        run: the training; it is closed at the end.
        records: `iter(run)`.
        history: what to add the records to.
        stop: ends training after the step under way; after the last step of an epoch its evaluation is due.
        after_each: called after each record.
        turn: gives a block in which nobody else uses the devices; each step stands in one.
    """
    try:
        while True:
            with turn():
                record = next(records, None)
            if record is None:
                break
            history.add(record)
            after_each()
            between_steps = isinstance(record, EpochRecord) or record.step % run.steps_per_epoch
            if stop.is_set() and between_steps:
                break
        with turn():
            run.close()
    except Exception as error:
        with contextlib.suppress(Exception), turn():  # the first error is the one to see
            run.close()
        _attach(history, error)
        raise


def _attach(history: History, error: Exception) -> None:
    """Lets an error carry the records so far: the cell that failed assigns no history."""
    vars(error)["history"] = history
    error.add_note(
        _(
            "The records up to step {step} are kept in this error. A notebook gets them by:"
            " import sys; history = sys.last_value.history",
            step=last_step(history),
        )
    )


async def _refresh_until_done(training: asyncio.Future[None], view: View, stop: threading.Event) -> None:
    pace = Pace()
    async with _front_end_events() as handle_events:
        while not training.done():
            try:
                await asyncio.wait({training}, timeout=_TICK_SECONDS)
                await handle_events()  # last, since it also makes what follows belong to this cell
                if pace.is_due():
                    pace.time(view.refresh)
            except (KeyboardInterrupt, asyncio.CancelledError):
                stop.set()  # and go on: the step under way and its checkpoint are still to be finished


class Pace:
    """Says when to refresh again, from what the last refresh took.

    Args:
        clock: returns the time in seconds.
        processor: returns how many seconds this thread has used the processor.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock, self._processor = clock, processor
        self._next = clock()

    def is_due(self) -> bool:
        """Returns whether the pause after the last refresh is over."""
        return self._clock() >= self._next

    def time(self, refresh: Callable[[], None]) -> None:
        """Calls `refresh`, and sets the pause after it by the time that it took."""
        start = self._processor()
        refresh()
        pause = max(_PAUSE_PER_REFRESH * (self._processor() - start), _SHORTEST_PAUSE_SECONDS)
        self._next = self._clock() + pause


def _view(run: Run, history: History, stop: threading.Event) -> View:
    if _kernel() is None:
        return TerminalView(run.total_steps, run.start_step, history)
    return NotebookView(run.total_steps, run.start_step, run.steps_per_epoch, history, stop.set)


def _kernel() -> Any:
    """Returns the Jupyter kernel that runs this code, or None."""
    if "IPython" not in sys.modules:
        return None
    return getattr(import_module("IPython").get_ipython(), "kernel", None)


@contextlib.asynccontextmanager
async def _front_end_events() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Gives a function that handles what arrived from the front end, such as a click on Stop.

    From ipykernel 7 on, and outside a kernel, the event loop does that by itself while the cell awaits.
    """
    if _kernel() is None or import_module("ipykernel").version_info[0] >= _FIRST_RESPONSIVE_IPYKERNEL:
        yield _nothing
        return
    async with import_module("jupyter_ui_poll").ui_events() as poll:

        async def handle_events() -> None:
            await poll(4)

        yield handle_events


async def _nothing() -> None:
    """Does nothing."""
