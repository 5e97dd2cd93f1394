"""The training lab: train one model under any plan, run beside run, and go on from any of them in another."""

from __future__ import annotations

import atexit
import functools
import threading
import weakref
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.overlay import STYLES
from course_lib.pictures.shapes import Node
from course_lib.training.records import History
from course_lib.turns import let_cells_take_turns, turns
from course_lib.watch import trains_now
from course_lib.watch.live import Run
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Group, State
from course_lib.widgets.table import page_table
from lessons.lesson_05_model_and_spatial import lab_setting, lab_view
from lessons.lesson_05_model_and_spatial.lab_folder import LabFolder
from lessons.lesson_05_model_and_spatial.lab_runs import LabRun, Status
from lessons.lesson_05_model_and_spatial.lab_setting import Setting, Subject
from lessons.lesson_05_model_and_spatial.lab_thread import Begin, train

_STILL_WIDTH = 440.0
_END_SECONDS = 10.0  # how long a kernel that is shut down waits for the last checkpoint
_labs: weakref.WeakSet[TrainingLab] = weakref.WeakSet()


class TrainingLab(TreeWidget):
    """Lets the reader train a model under one plan after the other, and compare the runs.

    A run trains in a thread, so that the kernel stays free; one at a time in the process. It leaves a
    checkpoint after each epoch and when it is stopped, from which a run under any other plan can go on.

    Args:
        model: the class of the model, such as `models.MLP`.
        values: the initial value of each variable, such as `models.initial_values()`.
        train_set: what to train on, as `training.train` takes it.
        test_set: what to evaluate on after each epoch.
        folder: where each run gets a folder for its checkpoints; those of earlier sessions are offered too.
            A new temporary folder if left out.
        checkpoints: folders with checkpoints of other trainings, by what they are called.
        recorded: runs that are shown first, each as what was asked for and its records.
        scheme: what is chosen first: "one device", "data", "model" or "spatial".
        setting: the numbers that are chosen first.
        optimizer: the class of the optimizer, `SGD` or `Adam`; SGD if left out.
        begin: makes a run of a setting, in place of the library's own training.

    Raises:
        CourseError: the values do not fit the model, there is no such scheme, or a folder has no name.
    """

    kind = "explorer"

    def __init__(
        self,
        model: Any,
        values: Mapping[str, npt.ArrayLike],
        train_set: Any,
        test_set: Any = None,
        *,
        folder: str | Path | None = None,
        checkpoints: Mapping[str, Any] | None = None,
        recorded: Sequence[tuple[Setting, History]] = (),
        scheme: str = "data",
        setting: Setting | None = None,
        optimizer: Any = None,
        begin: Begin | None = None,
    ) -> None:
        slot_bytes = (lambda _trained: 0) if optimizer is None else optimizer.slot_bytes
        num_examples = len(train_set[1] if isinstance(train_set, tuple) else train_set)
        self._subject = Subject(model.spec, model.spec.sizes(values), num_examples, slot_bytes)
        self._folder = LabFolder(folder, checkpoints or {})
        given = {"model": model, "values": values, "train_set": train_set, "test_set": test_set}
        self._begin_run: Begin = begin or functools.partial(_begin, optimizer=optimizer, **given)
        self._runs = [
            LabRun(number, asked, history, status=Status.RECORDED)
            for number, (asked, history) in enumerate(recorded, start=1)
        ]
        self._recorded = tuple(self._runs)
        self._said = ""
        self._thread: threading.Thread | None = None
        self._painting = threading.RLock()  # two threads paint: the one that trains, and the kernel's
        self._numbers = setting or Setting(None)
        super().__init__(lab_setting.first_state(self._numbers, scheme, self._subject))
        _labs.add(self)
        let_cells_take_turns()

    @property
    def runs(self) -> tuple[LabRun, ...]:
        """The runs so far, recorded ones first."""
        return tuple(self._runs)

    @property
    def setting(self) -> Setting:
        """The training that the reader chose.

        Raises:
            CourseError: it is impossible.
        """
        return lab_setting.setting_of(self.state, self._subject, self._folder.starts())

    def run_choice(self) -> LabRun:
        """Begins the chosen training in a thread and returns its run, which fills.

        Raises:
            CourseError: the choice is impossible, or another training runs.
        """
        setting = self.setting
        run = LabRun(self._next_number(), setting)
        trains_now.begin_lab(run.stop.set)
        try:
            run.folder = self._folder.make(run.number)
        except CourseError:
            trains_now.end_lab()
            raise
        self._runs.append(run)
        self._said = ""
        self._thread = threading.Thread(target=self._train, args=(run, run.folder), daemon=True)
        self._thread.start()
        for lab in tuple(_labs):
            lab.show()
        return run

    def wait(self, seconds: float | None = None) -> None:
        """Waits until no run of this lab trains, or for so many seconds."""
        if self._thread is not None:
            with turns.left():
                self._thread.join(seconds)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Training lab")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the plan, the numbers and the starts; on a page the schemes."""
        return lab_setting.groups(state, self._folder.starts(), page=page)

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state made whole after a choice; on a page that of the chosen scheme."""
        if page:
            return lab_setting.first_state(self._numbers, state["scheme"], self._subject)
        return lab_setting.settled(state, self._subject, self._folder.starts())

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the buttons, the curves and costs of the runs, and the code of the choice."""
        starts = {} if page else self._folder.starts()
        chosen, refused = None, []
        try:
            chosen = lab_setting.setting_of(state, self._subject, starts)
        except CourseError as error:
            refused = [pieces.refusal(error)]
        runs = self._shown(page=page)
        return [
            *refused,
            *self._buttons(legal=not refused, page=page),
            *lab_view.curve_panels(runs),
            *lab_view.cost_panels(self._subject, chosen, runs),
            *(lab_view.code(chosen.plan) if chosen else []),
        ]

    def for_a_page(self) -> dict[str, Any]:
        """Returns a view for each scheme: they are few, and need no file."""
        return {"table": page_table(self)}

    def still(self) -> str:
        """Returns what the lab is, with the recorded runs, for pages where scripts do not run."""
        words = arranging.lines_of_text(self._lines(), size=14, max_width=_STILL_WIDTH)
        curves = lab_view.curve_drawings(self._recorded) if self._recorded else []
        drawing = arranging.stacked([words, *curves], 12)
        return shapes.to_svg(arranging.document(drawing, self.title()))

    def close(self) -> None:
        """Takes the lab off the page; its runs and their checkpoints stay."""
        _labs.discard(self)
        super().close()

    def show(self, *change: object) -> None:
        """Brings what the notebook shows up to date; from any thread."""
        with self._painting:
            if change:  # what was said was about another choice
                self._said = ""
            super().show()

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        return [
            self.title(),
            _("Choose how the model and the batch are laid out, and train: run beside run."),
        ]

    def heard(self, name: str) -> None:
        """Begins the chosen training or ends the one that runs, and says why it cannot."""
        if name == "stop":
            trains_now.stop_lab()
        if name == "run":
            try:
                self.run_choice()
            except CourseError as error:
                self._said = f"✗ {error}"
        self.show()

    def _train(self, run: LabRun, folder: Path) -> None:
        try:
            train(run, folder, self._begin_run, self.show)
        finally:
            trains_now.end_lab()
            for lab in tuple(_labs):
                lab._said = ""  # that a training runs
                lab.show()

    def _buttons(self, *, legal: bool, page: bool) -> list[Node]:
        if page:
            return pieces.button(_("Run"), name="run", why_not=_on_a_page())
        illegal = "" if legal else _("This choice cannot be trained.")
        return [
            *pieces.button(_("Run"), name="run", why_not=illegal),
            *pieces.button(_("Stop"), name="stop", idle=not trains_now.a_lab()),
            pieces.spoken("verdict", self._said or lab_view.announced(self._runs)),
        ]

    def _shown(self, *, page: bool) -> tuple[LabRun, ...]:
        return (self._recorded if page else self.runs)[-len(STYLES) :]

    def _next_number(self) -> int:
        return 1 + max([self._folder.last_number(), *(run.number for run in self._runs)])


def _begin(setting: Setting, folder: Path, **given: Any) -> Run:
    run: Run = import_module("lessons.lesson_05_model_and_spatial.lab_training").begin(
        setting, folder, **given
    )
    return run


@atexit.register
def _end() -> None:
    """Lets a run that trains while the kernel is shut down leave its checkpoint."""
    trains_now.stop_lab()
    for lab in tuple(_labs):
        lab.wait(_END_SECONDS)


def _on_a_page() -> str:
    return _("The button needs a running notebook: open this lesson in Jupyter or Colab.")
