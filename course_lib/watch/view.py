"""What live training shows in the output of its cell: a progress bar, a Stop button and the curves."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

import ipywidgets
from IPython.display import display

from course_lib.i18n import _
from course_lib.pictures.curves import Panels
from course_lib.watch.curves import SMOOTHING_STEPS, curves, splits_of, summary
from course_lib.watch.records import History

_QUICK = 1  # how hard the PNG encoder tries for a picture that the next one replaces


class View:
    """The controls and the curves of a training.

    What it leaves behind holds no time and no duration, so that a stored notebook does not change from run
    to run.

    Args:
        history: the records, to which the training adds.
        num_steps: the number of the training's last step.
        on_stop: what the Stop button calls.
    """

    def __init__(self, history: History, num_steps: int, on_stop: Callable[[], None]) -> None:
        self._history, self._num_steps = history, num_steps
        self._panels = Panels([""], num_steps, SMOOTHING_STEPS)
        self._bar = ipywidgets.IntProgress(min=0, max=num_steps)
        self._button = ipywidgets.Button(description=_("Stop"), icon="stop", tooltip=_("Stop training"))
        # Not a Label: that of ipywidgets 7 calls MathJax 2 at each change, and JupyterLab 4 has MathJax 3.
        self._text = ipywidgets.HTML()
        self._button.on_click(lambda _button: on_stop())
        self._show_progress()
        wrapping = ipywidgets.Layout(flex_flow="row wrap")  # long texts go below, also on a phone
        _display_controls(ipywidgets.HBox([self._bar, self._button, self._text], layout=wrapping))
        data, metadata = self._bundle(self._panels.png(_QUICK))
        self._picture: Any = display(data, metadata=metadata, raw=True, display_id=True)

    def refresh(self) -> None:
        """Shows the records that have come so far."""
        self._show_progress()
        self._draw(_QUICK)

    def finish(self) -> None:
        """Shows the last state, which depends on the records alone."""
        self._button.disabled = True
        self._show_progress()
        self._panels = Panels([""], self._num_steps, SMOOTHING_STEPS, splits_of([self._history]))
        self._draw()

    def _draw(self, compress_level: int = 6) -> None:
        self._panels.show([curves(self._history)])
        data, metadata = self._bundle(self._panels.png(compress_level))
        self._picture.update(data, metadata=metadata, raw=True)

    def _show_progress(self) -> None:
        step, epoch = self._history.last_step, self._history.epoch
        values = {"step": step, "total_steps": self._num_steps}
        told = _("step {step} of {total_steps}, epoch {epoch}", epoch=epoch, **values)
        if self._history.stopped:
            told = _("Stopped after step {step} of {total_steps}.", **values)
        self._bar.value, self._text.value = step, html.escape(told)

    def _bundle(self, png: bytes) -> tuple[dict[str, str], dict[str, Any]]:
        # The text stays the same from picture to picture: nbval compares it, update by update.
        text = _("Picture: loss and accuracy over the steps.")
        alt = _("Curves of loss and accuracy, {described}.", described=summary(self._history))
        return {"image/png": base64.b64encode(png).decode(), "text/plain": text}, {"image/png": {"alt": alt}}


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
