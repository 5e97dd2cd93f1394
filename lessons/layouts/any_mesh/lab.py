"""The training lab: train one model under any plan, run beside run, and go on from any of them in another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from course_lib.errors import CourseError
from course_lib.explorers.experiment import why_not_on_a_page
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node, node
from course_lib.watch.records import History
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Group, State
from course_lib.widgets.listings import code_listings
from lessons.layouts.any_mesh import lab_runs, lab_setting, lab_view
from lessons.layouts.any_mesh.lab_runs import LabRun, Setting, starts_of
from lessons.layouts.any_mesh.lab_setting import Subject


class TrainingLab(TreeWidget):
    """Lets the reader train a model under one plan after the other, and compare the runs.

    A run trains as a task of the kernel's own loop, one at a time: while a cell runs, it rests. Where it ends
    or is stopped it leaves a checkpoint, from which a run under any other plan can go on. So can one whose
    kernel was killed, from its last epoch: a new lab has the runs that it finds in the folder.

    Args:
        train: the lesson's `train(layouts, folder, steps, batch_size, learning_rate)`, which yields a record
            a step. It goes on from the checkpoint in its folder, if there is one, and saves each epoch and
            where it ends. `layouts` has for each tensor its layout, or None on one device.
        folder: where the runs are kept, each in a folder of its own.
        subject: what the plans are made of, as `lab_setting.Subject` takes it.
    """

    kind, name = "explorer", "training_lab"
    carries_table = True  # a view for each scheme, which follow from the reader's model
    title = later("Training lab")
    _newest: ClassVar[TrainingLab | None] = None

    def __init__(
        self,
        train: Callable[..., Generator[Any]],
        folder: str,
        **subject: Any,
    ) -> None:
        self._train, self._subject, self._folder = train, Subject(**subject), Path(folder)
        if TrainingLab._newest:  # its cell was run again
            TrainingLab._newest.stop()
        TrainingLab._newest = self
        self.runs = self._kept_runs()
        self._said = ""
        self._records: Generator[Any] | None = None
        self.task: asyncio.Task[None] | None = None
        super().__init__(lab_setting.first_state(next(iter(self._subject.meshes)), self._subject))

    @property
    def setting(self) -> Setting:
        """The training that the reader chose.

        Raises:
            CourseError: it is impossible.
        """
        return lab_setting.setting_of(self.state, self._subject, starts_of(self.runs))

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the plan, the numbers and the starts."""
        return lab_setting.groups(state, self._subject, starts_of(self.runs), page=False)

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the schemes."""
        return lab_setting.groups(state, self._subject, starts_of(self.runs), page=True)

    def settled(self, state: State) -> State:
        """Returns the state made whole after a choice."""
        return lab_setting.settled(state, self._subject, starts_of(self.runs))

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
            chosen = lab_setting.setting_of(state, self._subject, starts_of(self.runs))
        except CourseError as error:
            refused = [pieces.refusal(error)]
        runs = [] if page else self.runs[-lab_view.MOST_RUNS :]
        return [
            *refused,
            *self._buttons(legal=not refused, page=page),
            *lab_view.curve_panels(runs),
            *lab_view.cost_panels(self._subject, chosen, runs),
            *([code_listings(chosen.plan)] if chosen and chosen.plan else []),
        ]

    def still(self) -> Node:
        """Returns what the lab is, for pages where scripts do not run."""
        purpose = _("Choose how the model and the batch are laid out, and train: run beside run.")
        return node("div", node("p", self.title), node("p", purpose))

    def show(self, *change: object) -> None:
        """Brings what the notebook shows up to date."""
        if change:  # what was said was about another choice
            self._said = ""
        super().show()

    def heard(self, name: str) -> None:
        """Begins the chosen training or ends the one that runs, and says why it cannot."""
        if name == "stop":
            self.stop()
        if name == "run":
            try:
                self._begin()
            except (CourseError, OSError) as error:
                self._said = f"✗ {error}"
        self.show()

    def _begin(self) -> None:
        """Begins a training as a task of the loop, which fills its run."""
        if any(run.trains for run in self.runs):
            raise CourseError(
                _("Another training runs in this lab."),
                allowed=_("one training at a time"),
                cure=_("Wait until it ends, or press Stop."),
            )
        setting, layouts = self.setting, _layouts(self.setting, self._subject)
        self._folder.mkdir(parents=True, exist_ok=True)
        run = self._run(1 + len(self._logs()), setting)
        shutil.rmtree(run.folder, ignore_errors=True)  # a kernel was killed before it wrote the log
        if setting.start is not None:  # what is in the folder is what a training goes on from
            shutil.copytree(setting.start.folder, run.folder)
            run.saved_step = setting.start.step
        with run.log.open("x") as log:
            log.write(json.dumps(self.state) + "\n")
        steps = run.last_step - run.step
        self._records = self._train(
            layouts, str(run.folder), steps, setting.batch_size, setting.learning_rate
        )
        self._said = ""
        self.runs.append(run)
        self.task = asyncio.get_running_loop().create_task(lab_runs.follow(run, self._records, self.show))

    def stop(self) -> None:
        """Ends the run that trains, if there is one."""
        if self._records:
            lab_runs.stop(self.runs[-1], self._records)

    def _run(self, number: int, setting: Setting) -> LabRun:
        last_step = setting.epochs * (self._subject.num_examples // setting.batch_size)
        return LabRun(number, setting, self._folder / f"run-{number:04d}", last_step)

    def _logs(self) -> list[Path]:
        return sorted(self._folder.glob("run-*.jsonl"))

    def _kept_runs(self) -> list[LabRun]:
        """Returns the runs in the folder that a training can go on from, each up to its newest checkpoint."""
        runs: list[LabRun] = []
        for number, log in enumerate(self._logs(), start=1):
            step = lab_runs.whole_step(log.with_suffix(""))
            if step == 0:
                continue
            with contextlib.suppress(CourseError):  # it was of another model
                state, *records = lab_runs.logged(log)
                run = self._run(number, lab_setting.setting_of(state, self._subject, starts_of(runs)))
                run.history = History([record for record in records if record["step"] <= step])
                run.saved_step, run.status = step, "finished" if step == run.last_step else "stopped"
                runs.append(run)
        return runs

    def _buttons(self, *, legal: bool, page: bool) -> list[Node]:
        if page:
            return pieces.button(_("Run"), name="run", why_not=why_not_on_a_page())
        illegal = "" if legal else _("This choice cannot be trained.")
        return [
            *pieces.button(_("Run"), name="run", why_not=illegal),
            *pieces.button(_("Stop"), name="stop", idle=not any(run.trains for run in self.runs)),
            pieces.spoken("verdict", self._said or lab_view.announced(self.runs)),
        ]


def _layouts(setting: Setting, subject: Subject) -> dict[str, Any]:
    """Returns the layout of each tensor, on the first devices as many as the mesh has; None on one device."""
    if setting.plan is None:
        return dict.fromkeys(subject.axes)
    from course_lib.devices.dtensor import create_mesh, to_layout  # with TensorFlow

    mesh = create_mesh(setting.plan.mesh)
    return {name: to_layout(setting.plan.layout(axes), mesh) for name, axes in subject.axes.items()}
