"""What the reader of the training lab chooses: plan, batch size, learning rate, epochs, where to start."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.models.variables import ModelSpec
from course_lib.runtime import device_kind, num_devices
from course_lib.specs.collectives import require_right
from course_lib.specs.plan import BATCH, Plan
from course_lib.training.saved import Saved, names_in, whole_in
from course_lib.training.settings import Settings, require_learning_rate
from course_lib.widgets.controls import Choice, Group, Number, State
from lessons.lesson_05_model_and_spatial import lab_plan

FRESH = ""  # the start from initial values
_RUN = "run-"  # and the number of the run: its folder
_NUMBERS = {"batch_size": 64, "learning_rate": 1e-2, "epochs": 3}
_KEPT = ("batch_size", "learning_rate")  # what a training that goes on does not change


@dataclass(frozen=True)
class Subject:
    """What a lab trains, the same in all its runs.

    Attributes:
        spec: the model's declaration.
        sizes: the size of each axis of its variables.
        num_examples: the number of training examples.
    """

    spec: ModelSpec
    sizes: Mapping[str, int]
    num_examples: int

    @property
    def axes(self) -> tuple[str, ...]:
        """The named axes that a plan may split, the batch first."""
        return tuple(dict.fromkeys((BATCH, *self.spec.inputs, *self.spec.axes)))


@dataclass(frozen=True)
class Start:
    """A checkpoint from which a training can go on.

    Attributes:
        number: of the run that left it.
        saved: the checkpoint.
    """

    number: int
    saved: Saved

    def __str__(self) -> str:
        run = _("run {number}", number=self.number)
        return _("{run}, step {step}", run=run, step=self.saved.step)


@dataclass(frozen=True)
class Setting:
    """One training that the reader asked for.

    Attributes:
        plan: how the model and the batch are laid out; None for one device.
        batch_size: the number of examples in a global batch.
        learning_rate: the learning rate.
        epochs: the number of epochs in all.
        start: the checkpoint from which it goes on; None for the initial values.
    """

    plan: Plan | None
    batch_size: int = 64
    learning_rate: float = 1e-2
    epochs: int = 3
    start: Start | None = None


def run_folder(folder: Path, number: int) -> Path:
    """Returns where a run of that number keeps its checkpoints."""
    return folder / f"{_RUN}{number:03d}"


def run_numbers(folder: Path) -> Iterator[int]:
    """Yields the numbers of the runs that have a folder, those of earlier sessions too."""
    paths = sorted(folder.glob(f"{_RUN}[0-9]*")) if folder.is_dir() else []
    yield from (int(path.name.removeprefix(_RUN)) for path in paths)


def starts_in(folder: Path) -> dict[str, Start]:
    """Returns the whole checkpoints of a lab's runs, by a name of each, oldest runs first."""
    starts: dict[str, Start] = {}
    for number in run_numbers(folder):
        path = run_folder(folder, number)
        starts |= _starts_of_a_run(number, path, names_in(path))
    return starts


@functools.cache  # a checkpoint is read once, not at each refresh
def _starts_of_a_run(number: int, path: Path, _names: tuple[str, ...]) -> dict[str, Start]:
    return {f"{path.name}/{saved.name}": Start(number, saved) for saved in whole_in(path)}


def first_state(scheme: str, subject: Subject) -> State:
    """Returns the state that a lab begins with."""
    return {**lab_plan.first_state(scheme, subject.axes, num_devices()), **_NUMBERS, "start": FRESH}


def settled(state: State, subject: Subject, starts: Mapping[str, Start]) -> State:
    """Returns the state made whole after a choice: a training that goes on keeps its settings."""
    state = lab_plan.settled(state, subject.axes, num_devices())
    if state["start"] not in starts:
        return state
    kept = starts[state["start"]].saved.fact("settings")
    return {**state, **{name: kept[name] for name in _KEPT}}


def groups(state: State, starts: Mapping[str, Start], *, page: bool) -> list[Group]:
    """Returns the controls; on a page the schemes alone."""
    plan = lab_plan.groups(state, page=page)
    if page:
        return plan
    options = [(FRESH, _("initial values")), *((name, str(start)) for name, start in starts.items())]
    numbers = [Number(("epochs",), _("epochs in all"), least=1)]
    if state["start"] not in starts:
        numbers = [
            Number(("batch_size",), _("batch size"), least=1),
            Number(("learning_rate",), _("learning rate"), least=0, whole=False),
            *numbers,
        ]
    return [*plan, Group(_("Start from"), [Choice(("start",), options)]), Group(_("Training"), numbers)]


def setting_of(state: State, subject: Subject, starts: Mapping[str, Start]) -> Setting:
    """Returns the training that a state asks for.

    Raises:
        CourseError: the plan, the batch, the learning rate, the number of epochs or the start is impossible.
    """
    plan = lab_plan.plan_of(state, num_devices())
    require_learning_rate(state["learning_rate"])
    settings = Settings(state["epochs"], state["batch_size"])
    settings.order(subject.num_examples)
    if plan is not None:
        plan.check(subject.spec.tensors)
        plan.require_batch(settings.batch_size)
        sizes = {**subject.sizes, BATCH: settings.batch_size}
        plan.of(subject.spec.tensors, sizes)
        require_right(subject.spec.step_collectives(plan, sizes).collectives, device_kind())
    start = _start(state["start"], starts, settings.epochs)
    return Setting(plan, settings.batch_size, float(state["learning_rate"]), settings.epochs, start)


def _start(name: str, starts: Mapping[str, Start], epochs: int) -> Start | None:
    if name == FRESH:
        return None
    if name not in starts:
        raise CourseError(
            _("The checkpoint {name} is gone.", name=name),
            allowed=_("initial values, or a checkpoint that is kept"),
            cure=_("Choose another start."),
        )
    done = starts[name].saved.fact("progress").get("epoch", 0)
    if done >= epochs:
        raise CourseError(
            ngettext(
                "{start}: {count} epoch is done already.",
                "{start}: {count} epochs are done already.",
                done,
                start=starts[name],
            ),
            allowed=_("more epochs in all than that"),
            cure=_("Ask for more epochs than {done}, or choose another start.", done=done),
        )
    return starts[name]
