"""What live training shows: widgets and a picture in a notebook, a line an epoch in a terminal."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

import ipywidgets
from IPython.display import display

from course_lib.i18n import _
from course_lib.pictures.curves import Panels
from course_lib.training.records import History
from course_lib.watch.curves import SMOOTHING_STEPS, curves, last_step, splits_of, summary

_QUICK = 1  # how hard the PNG encoder tries for a picture that the next one replaces


class TerminalView:
    """A line for each epoch, and one if training was stopped."""

    def __init__(self, total_steps: int, start_step: int, history: History) -> None:
        self._total_steps = total_steps
        self._start_step = start_step
        self._history = history
        self._printed = len(history.epochs)

    def refresh(self) -> None:
        """Prints the epochs that were finished since the last time."""
        epochs, steps = list(self._history.epochs), list(self._history.steps)
        for count in range(self._printed + 1, len(epochs) + 1):
            record = epochs[count - 1]
            so_far = History([step for step in steps if step.step <= record.step], epochs[:count])
            print(_("epoch {epoch}, {described}", epoch=record.epoch, described=summary(so_far)))
        self._printed = len(epochs)

    def finish(self) -> None:
        """Prints what is left to print."""
        self.refresh()
        if self._history.stopped:
            print(_stopped(max(self._start_step, last_step(self._history)), self._total_steps))


class NotebookView:
    """A progress bar, a Stop button and the curves, in the output of the cell that runs.

    What it leaves behind holds no time and no duration, so that a stored notebook does not change from run
    to run.

    Args:
        total_steps: the number of the training's last step.
        start_step: the step after which this run begins.
        steps_per_epoch: the number of steps in an epoch.
        history: the records; another thread adds to them.
        on_stop: what the Stop button calls.
    """

    def __init__(
        self,
        total_steps: int,
        start_step: int,
        steps_per_epoch: int,
        history: History,
        on_stop: Callable[[], None],
    ) -> None:
        self._total_steps = total_steps
        self._start_step = start_step
        self._steps_per_epoch = steps_per_epoch
        self._history = history
        self._num_shown = 0
        self._panels = Panels([""], total_steps, SMOOTHING_STEPS)
        self._bar = ipywidgets.IntProgress(value=start_step, min=0, max=total_steps)
        self._button = ipywidgets.Button(description=_("Stop"), icon="stop", tooltip=_("Stop training"))
        # Not a Label: that of ipywidgets 7 calls MathJax 2 at each change, and JupyterLab 4 has MathJax 3.
        self._text = ipywidgets.HTML(value=html.escape(self._progress()))
        self._button.on_click(lambda _button: on_stop())
        wrapping = ipywidgets.Layout(flex_flow="row wrap")  # long texts go below, also on a phone
        _display_controls(ipywidgets.HBox([self._bar, self._button, self._text], layout=wrapping))
        self._picture = self._display_picture(self._panels.png(_QUICK))

    def refresh(self) -> None:
        """Shows the records that have come so far, if there are new ones."""
        num_records = len(self._history.steps) + len(self._history.epochs)
        if num_records == self._num_shown:
            return
        self._num_shown = num_records
        self._show_progress()
        self._panels.show([curves(self._history)])
        self._update_picture(self._panels.png(_QUICK))

    def finish(self) -> None:
        """Shows the last state, which depends on the records alone."""
        self._button.disabled = True
        self._show_progress()
        if self._history.stopped:
            self._text.value = html.escape(_stopped(self._step(), self._total_steps))
        drawn = [curves(self._history)]
        self._panels = Panels([""], self._total_steps, SMOOTHING_STEPS, splits_of(drawn))
        self._panels.show(drawn)
        self._update_picture(self._panels.png())

    def _step(self) -> int:
        return max(self._start_step, last_step(self._history))

    def _show_progress(self) -> None:
        self._bar.value = self._step()
        self._text.value = html.escape(self._progress())

    def _progress(self) -> str:
        return _(
            "step {step} / {total_steps}, epoch {epoch} / {epochs}",
            step=self._step(),
            total_steps=self._total_steps,
            epoch=max(-(-self._step() // self._steps_per_epoch), 1),
            epochs=-(-self._total_steps // self._steps_per_epoch),
        )

    def _display_picture(self, png: bytes) -> Any:
        data, metadata = self._bundle(png)
        return display(data, metadata=metadata, raw=True, display_id=True)

    def _update_picture(self, png: bytes) -> None:
        data, metadata = self._bundle(png)
        self._picture.update(data, metadata=metadata, raw=True)

    def _bundle(self, png: bytes) -> tuple[dict[str, str], dict[str, Any]]:
        # The text stays the same from picture to picture: nbval compares it, update by update.
        text = _("Picture: loss and accuracy over the steps.")
        alt = _("Curves of loss and accuracy, {described}.", described=summary(self._history))
        return {"image/png": base64.b64encode(png).decode(), "text/plain": text}, {"image/png": {"alt": alt}}


View = TerminalView | NotebookView


def _stopped(step: int, total_steps: int) -> str:
    return _("Stopped after step {step} of {total_steps}.", step=step, total_steps=total_steps)


def _display_controls(controls: ipywidgets.Widget) -> None:
    """Displays widgets with a note in place of them for readers of the static page.

    The bundle is written by hand because ipywidgets 7 leaves no room for one's own `text/html`.
    """
    note = _("While this cell runs, a progress bar and a Stop button appear here.")
    widget = {"version_major": 2, "version_minor": 0, "model_id": controls.model_id}
    bundle = {
        "application/vnd.jupyter.widget-view+json": widget,
        "text/html": f"<p><em>{html.escape(note)}</em></p>",
        "text/plain": note,
    }
    display(bundle, raw=True)
