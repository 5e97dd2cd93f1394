"""Four training runs, one of which has a mistake: choose one, or see all of them in one picture."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from course_lib.i18n import _, later
from course_lib.measured.files import load
from course_lib.pictures.shapes import Node, node
from course_lib.runtime import use_wide_font
from course_lib.watch.records import History
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State

RUNS = {"A": "eight", "B": "moved", "C": "broken", "D": "one"}
WRONG_LABELS = "C"
ALL = "all"


class RunsExplorer(Explorer):
    """Shows loss and accuracy of runs that were made before, under names that do not tell which is which."""

    name = "runs"
    title = later("Four training runs")

    def __init__(self) -> None:
        super().__init__({"run": "A"})

    def controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the runs."""
        options = [*((name, name) for name in RUNS), (ALL, _("all four"))]
        return [Group(_("Training run"), [Choice(("run",), options)])]

    def still(self) -> Node:
        """Returns what it shows, for pages where scripts do not run."""
        return node("div", node("p", self.title), node("p", _("Choose a run, and see its curves.")))

    def body(self, state: State) -> Sequence[Node]:
        """Returns the curves of the run, or of all."""
        from matplotlib import rc_context

        from course_lib.pictures.curves import Panels
        from course_lib.watch.curves import curves, summary

        names = [*RUNS] if state["run"] == ALL else [state["run"]]
        histories = {name: _history(RUNS[name]) for name in names}
        with rc_context():  # the book makes pages of several languages in one process
            use_wide_font()
            panels = Panels(tuple(names), 100, ("train",))
            panels.show([curves(history) for history in histories.values()])
            png = base64.b64encode(panels.png()).decode()
        told = _("; ").join(f"{name}: {summary(history)}" for name, history in histories.items())
        return [node("img", src=f"data:image/png;base64,{png}", alt=told, style="max-width: 100%")]


def _history(run: str) -> History:
    """Returns what `make results` stored of a run."""
    stored = load("whole_game-runs").runs[run]
    history = History()
    for step, (loss, accuracy) in enumerate(zip(stored.losses, stored.accuracies, strict=True), start=1):
        history.add({"step": step, "epoch": 1, "loss": loss, "accuracy": accuracy})
    return history
