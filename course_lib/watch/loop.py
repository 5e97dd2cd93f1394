"""Live training: curves, a progress bar and a Stop button in the cell that trains, which stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import html
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from typing import Any

import ipywidgets
from IPython import get_ipython
from IPython.display import display

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.curves import Panels, Picture
from course_lib.watch.curves import curves, splits_of, summary
from course_lib.watch.records import History, Record

_PAUSE_PER_REFRESH = 40  # so that showing takes 2.5 % of the time at most
_SHORTEST_PAUSE_SECONDS = 0.2  # more than five pictures a second help nobody
_LISTEN_SECONDS = 0.05
_FIRST_RESPONSIVE_IPYKERNEL = 7  # the first to handle messages while a cell awaits
_QUICK = 1  # how hard the PNG encoder tries for a picture that the next one replaces


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


class View:
    """The controls and the curves of a training.

    What it leaves behind holds no time and no duration, so that a stored notebook does not change from run
    to run.
    """

    def __init__(self, history: History, num_steps: int, on_stop: Callable[[], None]) -> None:
        self._history, self._num_steps = history, num_steps
        self._panels = Panels([""], num_steps)
        self._bar = ipywidgets.IntProgress(min=0, max=num_steps)
        self._button = ipywidgets.Button(description=_("Stop"), icon="stop", tooltip=_("Stop training"))
        # Not a Label: that of ipywidgets 7 calls MathJax 2 at each change, and JupyterLab 4 has MathJax 3.
        self._text = ipywidgets.HTML()
        self._button.on_click(lambda _button: on_stop())
        self._show_progress()
        wrapping = ipywidgets.Layout(flex_flow="row wrap")  # long texts go below, also on a phone
        controls = ipywidgets.HBox([self._bar, self._button, self._text], layout=wrapping)
        # The bundle is written by hand because ipywidgets 7 leaves no room for one's own `text/html`: readers
        # of the static page see a note in place of the widgets.
        note = _("While this cell runs, a progress bar and a Stop button appear here.")
        widget = {"version_major": 2, "version_minor": 0, "model_id": controls.model_id}
        bundle = {
            "application/vnd.jupyter.widget-view+json": widget,
            "text/html": f"<p><em>{html.escape(note)}</em></p>",
            "text/plain": note,
        }
        display(bundle, raw=True)
        self._shown: Any = display(self._picture(_QUICK), display_id=True)

    def refresh(self) -> None:
        """Shows the records that have come so far."""
        self._show_progress()
        self._draw(_QUICK)

    def finish(self) -> None:
        """Shows the last state, which depends on the records alone."""
        self._button.disabled = True
        self._show_progress()
        self._panels = Panels([""], self._num_steps, splits_of([self._history]))
        self._draw()

    def _draw(self, compress_level: int = 6) -> None:
        self._panels.show([curves(self._history)])
        self._shown.update(self._picture(compress_level))

    def _show_progress(self) -> None:
        step, epoch = self._history.last_step, self._history.epoch
        values = {"step": step, "total_steps": self._num_steps}
        told = _("step {step} of {total_steps}, epoch {epoch}", epoch=epoch, **values)
        if self._history.stopped:
            told = _("Stopped after step {step} of {total_steps}.", **values)
        self._bar.value, self._text.value = step, html.escape(told)

    def _picture(self, compress_level: int) -> Picture:
        # The text stays the same from picture to picture: nbval compares it, update by update.
        text = _("Picture: loss and accuracy over the steps.")
        alt = _("Curves of loss and accuracy, {described}.", described=summary(self._history))
        return Picture(self._panels.png(compress_level), alt, text)
