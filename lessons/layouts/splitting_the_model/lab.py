"""The training lab: train one model under any plan, run beside run, and go on from any of them in another."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.explorers.experiment import why_not_on_a_page
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node, node
from course_lib.turns import let_cells_take_turns, turns
from course_lib.watch import trains_now
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Group, State
from course_lib.widgets.table import page_table
from lessons.layouts.splitting_the_model import lab_setting, lab_view
from lessons.layouts.splitting_the_model.lab_runs import LabRun, starts_of, train
from lessons.layouts.splitting_the_model.lab_setting import Setting, Subject
from lessons.layouts.splitting_the_model.overlay import STYLES


class TrainingLab(TreeWidget):
    """Lets the reader train a model under one plan after the other, and compare the runs.

    A run trains in a thread, so that the kernel stays free; one at a time in the process. It leaves a
    checkpoint after each epoch and when it is stopped, from which a run under any other plan can go on.

    Args:
        model: the class of the model, such as `models.MLP`.
        values: the initial value of each variable, such as `models.initial_values()`.
        train_set: what to train on.
        test_set: what to evaluate on after each epoch.
    """

    kind, name = "explorer", "training_lab"
    title = later("Training lab")

    def __init__(
        self,
        model: Any,
        values: Mapping[str, npt.ArrayLike],
        train_set: Examples,
        test_set: Examples | None = None,
    ) -> None:
        self._subject = Subject(model.spec, model.spec.sizes(values), len(train_set))
        self._trained = {"model": model, "values": values, "train_set": train_set, "test_set": test_set}
        self._folder = Path(tempfile.mkdtemp())  # each run gets a folder in it
        self._runs: list[LabRun] = []
        self._said = ""
        self._thread: threading.Thread | None = None
        self._painting = threading.RLock()  # two threads paint: the one that trains, and the kernel's
        super().__init__(lab_setting.first_state("data", self._subject))
        let_cells_take_turns()

    @property
    def runs(self) -> tuple[LabRun, ...]:
        """The runs so far."""
        return tuple(self._runs)

    @property
    def setting(self) -> Setting:
        """The training that the reader chose.

        Raises:
            CourseError: it is impossible.
        """
        return lab_setting.setting_of(self.state, self._subject, starts_of(self._runs))

    def wait(self, seconds: float | None = None) -> None:
        """Waits until no run of this lab trains, or for so many seconds."""
        if self._thread is not None:
            with turns.left():
                self._thread.join(seconds)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the plan, the numbers and the starts."""
        return lab_setting.groups(state, starts_of(self._runs), page=False)

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the schemes."""
        return lab_setting.groups(state, starts_of(self._runs), page=True)

    def settled(self, state: State) -> State:
        """Returns the state made whole after a choice."""
        return lab_setting.settled(state, self._subject, starts_of(self._runs))

    def page_settled(self, state: State) -> State:
        """Returns the state of the chosen scheme."""
        return lab_setting.first_state(state["scheme"], self._subject)

    def body(self, state: State) -> Sequence[Node]:
        """Returns the buttons, the curves and costs of the runs, and the code of the choice."""
        return self._body(state, page=False)

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the same before any run."""
        return self._body(state, page=True)

    def _body(self, state: State, *, page: bool) -> Sequence[Node]:
        chosen, refused = None, []
        try:
            chosen = lab_setting.setting_of(state, self._subject, starts_of(self._runs))
        except CourseError as error:
            refused = [pieces.refusal(error)]
        runs = () if page else self.runs[-len(STYLES) :]
        return [
            *refused,
            *self._buttons(legal=not refused, page=page),
            *lab_view.curve_panels(runs),
            *lab_view.cost_panels(self._subject, chosen, runs),
            *(lab_view.code(chosen.plan) if chosen else []),
        ]

    def page_table(self) -> dict[str, Any]:
        """Returns a view for each scheme, which follow from the reader's model."""
        return page_table(self)

    def still(self) -> Node:
        """Returns what the lab is, for pages where scripts do not run."""
        purpose = _("Choose how the model and the batch are laid out, and train: run beside run.")
        return node("div", node("p", self.title), node("p", purpose))

    def show(self, *change: object) -> None:
        """Brings what the notebook shows up to date; from any thread."""
        with self._painting:
            if change:  # what was said was about another choice
                self._said = ""
            self.state = self.settled(self.state)  # a run may have removed the chosen start
            super().show()

    def heard(self, name: str) -> None:
        """Begins the chosen training or ends the one that runs, and says why it cannot."""
        if name == "stop":
            trains_now.stop_lab()
        if name == "run":
            try:
                self._begin(self.setting)
            except CourseError as error:
                self._said = f"✗ {error}"
        self.show()

    def _begin(self, setting: Setting) -> None:
        """Begins a training in a thread, which fills its run."""
        number = 1 + len(self._runs)
        run = LabRun(number, setting, self._folder / f"run-{number:03d}")
        trains_now.begin_lab(run.stop.set)
        self._runs.append(run)
        self._said = ""
        self._thread = threading.Thread(target=self._train, args=(run,), daemon=True)
        self._thread.start()

    def _train(self, run: LabRun) -> None:
        try:
            train(run, self._trained, self.show)
        finally:
            trains_now.end_lab()
            self._said = ""  # that a training runs
            self.show()

    def _buttons(self, *, legal: bool, page: bool) -> list[Node]:
        if page:
            return pieces.button(_("Run"), name="run", why_not=why_not_on_a_page())
        illegal = "" if legal else _("This choice cannot be trained.")
        return [
            *pieces.button(_("Run"), name="run", why_not=illegal),
            *pieces.button(_("Stop"), name="stop", idle=not trains_now.a_lab()),
            pieces.spoken("verdict", self._said or lab_view.announced(self._runs)),
        ]
