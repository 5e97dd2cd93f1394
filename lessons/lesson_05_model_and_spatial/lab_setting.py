"""What the reader of the training lab chooses: plan, batch size, learning rate, epochs, where to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.models.variables import ModelSpec
from course_lib.runtime import device_kind, num_devices
from course_lib.specs.collectives import require_right
from course_lib.specs.plan import BATCH, Plan
from course_lib.training.saved import Saved
from course_lib.training.settings import Settings, require_learning_rate
from course_lib.widgets.controls import Choice, Group, Number, State
from lessons.lesson_05_model_and_spatial import lab_plan

FRESH = ""  # the start from initial values
_KEPT = ("batch_size", "learning_rate")  # what a training that goes on does not change


@dataclass(frozen=True)
class Subject:
    """What a lab trains, the same in all its runs.

    Attributes:
        spec: the model's declaration.
        sizes: the size of each axis of its variables.
        num_examples: the number of training examples.
        slot_bytes: how many bytes of its own the optimizer keeps beside so many bytes of trained variables.
    """

    spec: ModelSpec
    sizes: Mapping[str, int]
    num_examples: int
    slot_bytes: Callable[[int], int] = lambda _trained_bytes: 0

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The named axes that a plan may split, the batch first."""
        return tuple(dict.fromkeys((BATCH, *self.spec.inputs, *self.spec.axes)))


@dataclass(frozen=True)
class Start:
    """A checkpoint from which a training can go on.

    Attributes:
        run: what the run is called that left it.
        saved: the checkpoint.
    """

    run: str
    saved: Saved

    def __str__(self) -> str:
        return _("{run}, step {step}", run=self.run, step=self.saved.step)


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

    @property
    def steps_alike(self) -> tuple[int, float]:
        """What two runs must share for their steps to be the same but for rounding."""
        return self.batch_size, self.learning_rate


def first_state(setting: Setting, scheme: str, subject: Subject) -> State:
    """Returns the state that a lab begins with."""
    own = {name: asdict(setting)[name] for name in (*_KEPT, "epochs")}
    return {**lab_plan.first_state(scheme, subject.axes, num_devices()), **own, "start": FRESH}


def settled(state: State, subject: Subject, starts: Mapping[str, Start]) -> State:
    """Returns the state made whole after a choice: a training that goes on keeps its settings."""
    state = lab_plan.settled(state, subject.axes, num_devices())
    start = starts.get(state["start"])
    return state if start is None else {**state, **_kept(start)}


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


def _kept(start: Start) -> State:
    settings = start.saved.facts.get("settings", {})
    return {name: settings[name] for name in _KEPT if name in settings}
