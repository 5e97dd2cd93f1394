"""Live training: curves, a progress bar and a Stop button in the cell that trains, which stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module

from IPython import get_ipython

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.watch.records import History, Record
from course_lib.watch.view import View

_PAUSE_PER_REFRESH = 40  # so that showing takes 2.5 % of the time at most
_SHORTEST_PAUSE_SECONDS = 0.2  # more than five pictures a second help nobody
_LISTEN_SECONDS = 0.05
_FIRST_RESPONSIVE_IPYKERNEL = 7  # the first to handle messages while a cell awaits


async def live(records: Iterator[Record], history: History | None = None, *, steps: int) -> History:
    """Returns the records of a training, run to its end or until it is stopped, with live curves meanwhile.

    In a notebook, write `history = await live(train(...), steps=...)`. Stop and the interrupt key end the
    training after the step that is under way: its generator is closed, and the cells below go on.

    Args:
        records: what trains as its records are asked for, such as a generator. It yields a dictionary for
            each step, with `step`, `epoch`, `loss` and `accuracy`, and may yield one for each evaluation,
            with `step`, `epoch`, `test_loss` and `test_accuracy`. Steps and epochs are counted from 1.
        history: the records from before, where the training goes on from a checkpoint: the curves continue
            them. Records of steps that are done again are dropped.
        steps: the number of the training's last step.

    Raises:
        CourseError: what is given yields no records.
    """
    if not isinstance(records, Iterator):
        raise CourseError(
            _("{given} does not train.", given=type(records).__name__),
            allowed=_("a generator of records"),
            cure=_("Write a function that yields a dictionary for each step, and call it."),
        )
    before = history or History()
    seen, stop = History([*before.steps], [*before.epochs]), asyncio.Event()
    view = View(seen, steps, stop.set) if get_ipython() else None  # outside a notebook nobody looks
    try:
        await _train(records, seen, stop, view.refresh if view else lambda: None)
    finally:
        if hasattr(records, "close"):
            records.close()
        if view:
            view.finish()
    return seen


async def _train(records: Iterator[Record], seen: History, stop: asyncio.Event, refresh: Refresh) -> None:
    """Adds the records to `seen` as they come, until `stop` is set."""
    pace, heard = Pace(), time.perf_counter()
    async with _front_end() as listen:
        with _interrupt_key(stop.set):
            for record in records:
                seen.add(record)
                if time.perf_counter() - heard > _LISTEN_SECONDS:
                    await listen()
                    heard = time.perf_counter()
                if stop.is_set():
                    seen.stopped = True
                    return
                pace.show(refresh)


Refresh = Callable[[], None]


class Pace:
    """Refreshes a picture as often as may be: the longer that took, the longer the pause after it."""

    def __init__(self) -> None:
        self._next = time.perf_counter()

    def show(self, refresh: Refresh) -> None:
        """Calls `refresh`, if the pause after the last time is over."""
        start = time.perf_counter()
        if start >= self._next:
            refresh()
            end = time.perf_counter()
            self._next = end + max(_PAUSE_PER_REFRESH * (end - start), _SHORTEST_PAUSE_SECONDS)


@contextlib.contextmanager
def _interrupt_key(stop: Callable[[], None]) -> Iterator[None]:
    """Has the interrupt key call `stop`, so that no step is torn; a second time it does what it did."""
    before = signal.getsignal(signal.SIGINT)

    def interrupted(*_signal: object) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.asynccontextmanager
async def _front_end() -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Gives a function that lets in what arrived from the front end, such as a click on Stop.

    From ipykernel 7 on, and outside a kernel, the event loop handles that once the cell awaits it.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or import_module("ipykernel").version_info[0] >= _FIRST_RESPONSIVE_IPYKERNEL:
        yield lambda: asyncio.sleep(0)
        return
    async with import_module("jupyter_ui_poll").ui_events() as poll:
        yield lambda: poll(4)
