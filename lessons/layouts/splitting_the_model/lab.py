"""The training lab: train one model under any plan, run beside run, and go on from any of them in another."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.explorers.experiment import why_not_on_a_page
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node, node
from course_lib.specs.plan import Axes
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Group, State
from course_lib.widgets.listings import code_listings
from lessons.layouts.splitting_the_model import lab_setting, lab_view
from lessons.layouts.splitting_the_model.lab_runs import LabRun, Setting, follow, starts_of
from lessons.layouts.splitting_the_model.lab_setting import Subject


class TrainingLab(TreeWidget):
    """Lets the reader train a model under one plan after the other, and compare the runs.

    A run trains as a task of the kernel's own loop, one at a time: while a cell runs, it rests. Where it ends
    or is stopped it leaves a checkpoint, from which a run under any other plan can go on.

    Args:
        train: the lesson's `train(layouts, folder, steps, batch_size, learning_rate)`, which yields a record
            a step. It goes on from the checkpoint in the folder, if there is one, and leaves one there.
            `layouts` has for each tensor its layout, or None on one device.
        meshes, splits, axes, sizes, num_examples: what the plans are made of, as `lab_setting.Subject`.
    """

    kind, name = "explorer", "training_lab"
    carries_table = True  # a view for each scheme, which follow from the reader's model
    title = later("Training lab")

    def __init__(
        self,
        train: Callable[..., Generator[Any]],
        *,
        meshes: Mapping[str, Sequence[tuple[str, int]]],
        splits: Mapping[str, str],
        axes: Mapping[str, Axes],
        sizes: Mapping[str, int],
        num_examples: int,
    ) -> None:
        self._train = train
        self._subject = Subject(meshes, splits, axes, sizes, num_examples)
        self._folder = Path(tempfile.mkdtemp())  # each run gets a folder in it
        self.runs: list[LabRun] = []
        self._said = ""
        self.task: asyncio.Task[None] | None = None
        super().__init__(lab_setting.first_state(next(iter(meshes)), self._subject))

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
            for run in self.runs:
                run.stops = True
        if name == "run":
            try:
                self._begin(self.setting)
            except CourseError as error:
                self._said = f"✗ {error}"
        self.show()

    def _begin(self, setting: Setting) -> None:
        """Begins a training as a task of the loop, which fills its run."""
        if any(run.trains for run in self.runs):
            raise CourseError(
                _("Another training runs in this lab."),
                allowed=_("one training at a time"),
                cure=_("Wait until it ends, or press Stop."),
            )
        number, layouts = 1 + len(self.runs), _layouts(setting, self._subject)
        last_step = setting.epochs * (self._subject.num_examples // setting.batch_size)
        run = LabRun(number, setting, self._folder / f"run-{number:03d}", last_step)
        if setting.start is not None:  # what is in the folder is what a training goes on from
            shutil.copytree(setting.start.folder, run.folder)
        steps = last_step - run.step
        records = self._train(layouts, str(run.folder), steps, setting.batch_size, setting.learning_rate)
        self._said = ""
        self.runs.append(run)
        self.task = asyncio.get_running_loop().create_task(follow(run, records, self.show))

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
