"""What the reader of the training lab chooses: a plan, batch size, learning rate, epochs, where to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.models.variables import ModelSpec
from course_lib.runtime import device_kind, num_devices
from course_lib.specs.collectives import require_right
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.saved import Saved
from course_lib.training.settings import Settings, require_learning_rate
from course_lib.widgets.controls import Choice, Group, Number, State

ONE_DEVICE, OWN = "one device", "own"
SCHEMES: Mapping[str, Callable[[int], Plan]] = {
    "data": data_parallel,
    "model": lambda devices: model_parallel(max(devices // 2, 1), 2),
    "spatial": lambda devices: spatial_parallel(max(devices // 4, 1), 2, 2),
}
FRESH = ""  # the start from initial values
_MOST_DIMS = 3
_NEW_NAMES = ("batch", "model", "feature", "x")  # one more than dimensions, as some are taken
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
        setting: what the run was asked for.
    """

    number: int
    saved: Saved
    setting: Setting

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


def first_state(scheme: str, subject: Subject) -> State:
    """Returns the state of a scheme, or of one device, before the reader has chosen."""
    begin = {"scheme": "data", "laid_out": "", "num_dims": 1, "mesh": [], "splits": {}}
    state = {**_laid_out(begin, subject), **_NUMBERS, "start": FRESH}
    return _laid_out({**state, "scheme": scheme}, subject)


def settled(state: State, subject: Subject, starts: Mapping[str, Start]) -> State:
    """Returns the state made whole: a training that goes on keeps its settings, if its start is kept."""
    state = _laid_out(state, subject)
    if state["start"] not in starts:
        return {**state, "start": FRESH}
    kept = starts[state["start"]].setting
    return {**state, **{name: getattr(kept, name) for name in _KEPT}}


def _laid_out(state: State, subject: Subject) -> State:
    """Returns a state whose mesh and splits are those of its scheme, or whose scheme is "own"."""
    scheme = state["scheme"]
    plan = SCHEMES[scheme](num_devices()) if scheme in SCHEMES else None
    splits = {axis: plan.splits.get(axis, UNSHARDED) for axis in subject.axes} if plan else {}
    if plan and scheme != state["laid_out"]:  # it was just chosen
        mesh = [list(dim) for dim in plan.mesh.dims]
        state = {**state, "num_dims": len(mesh), "mesh": mesh, "splits": splits}
    taken = [name for name, _size in state["mesh"]]
    new = [[name, 1] for name in _NEW_NAMES if name not in taken]
    mesh = [*state["mesh"], *new][: state["num_dims"]]
    names = [name for name, _size in mesh]
    own = {axis: name if name in names else UNSHARDED for axis, name in state["splits"].items()}
    if plan and (names, own) != (list(plan.mesh.names), splits):
        scheme = OWN
    return {**state, "mesh": mesh, "splits": own, "scheme": scheme, "laid_out": scheme}


def groups(state: State, starts: Mapping[str, Start], *, page: bool) -> list[Group]:
    """Returns the controls; on a page the schemes alone."""
    schemes = [(ONE_DEVICE, _("one device")), *_scheme_names().items(), (OWN, _("your own"))]
    scheme = Group(_("Scheme"), [Choice(("scheme",), schemes[:-1] if page else schemes)])
    if page:
        return [scheme]
    options = [(FRESH, _("initial values")), *((name, str(start)) for name, start in starts.items())]
    numbers = [Number(("epochs",), _("epochs in all"), least=1)]
    if state["start"] not in starts:
        numbers = [
            Number(("batch_size",), _("batch size"), least=1),
            Number(("learning_rate",), _("learning rate"), least=0, whole=False),
            *numbers,
        ]
    return [
        scheme,
        *([] if state["scheme"] == ONE_DEVICE else _mesh_groups(state)),
        Group(_("Start from"), [Choice(("start",), options)]),
        Group(_("Training"), numbers),
    ]


def _mesh_groups(state: State) -> list[Group]:
    names = [name for name, _size in state["mesh"]]
    counts = [(count, str(count)) for count in range(1, _MOST_DIMS + 1)]
    options = [(name, name) for name in (UNSHARDED, *names)]
    sizes = [Number(("mesh", at, 1), name, least=1) for at, name in enumerate(names)]
    return [
        Group(_("Mesh dimensions"), [Choice(("num_dims",), counts)]),
        Group(_("Their sizes"), sizes),
        *(
            Group(_("Axis `{axis}`", axis=axis), [Choice(("splits", axis), options)])
            for axis in state["splits"]
        ),
    ]


def described(plan: Plan | None) -> str:
    """Returns what a plan is called in legends: its scheme, or what it splits, and its mesh."""
    if plan is None:
        return _("one device")
    known = {SCHEMES[scheme](8).name: name for scheme, name in _scheme_names().items()}
    splits = _(", ").join(f"{axis} → {name}" for axis, name in plan.splits.items())
    return _("{plan} on {mesh}", plan=known.get(plan.name) or splits or _("all unsharded"), mesh=plan.mesh)


def _scheme_names() -> dict[str, str]:
    return {"data": _("data parallel"), "model": _("model parallel"), "spatial": _("spatial parallel")}


def setting_of(state: State, subject: Subject, starts: Mapping[str, Start]) -> Setting:
    """Returns the training that a state asks for.

    Raises:
        CourseError: the plan, the batch, the learning rate, the number of epochs or the start is impossible.
    """
    plan = _plan_of(state)
    require_learning_rate(state["learning_rate"])
    settings = Settings(state["epochs"], state["batch_size"])
    settings.order(subject.num_examples)
    if plan is not None:
        plan.require_batch(settings.batch_size)
        sizes = {**subject.sizes, BATCH: settings.batch_size}
        plan.shardings(subject.spec.tensors, sizes)
        require_right(subject.spec.step_collectives(plan, sizes).collectives, device_kind())
    start = starts.get(state["start"])
    if start is not None:
        _require_an_epoch_left(start, settings.epochs)
    return Setting(plan, settings.batch_size, float(state["learning_rate"]), settings.epochs, start)


def _plan_of(state: State) -> Plan | None:
    """Returns the plan that was chosen; None for one device."""
    scheme = state["scheme"]
    if scheme == ONE_DEVICE:
        return None
    mesh = MeshSpec(tuple(dim) for dim in state["mesh"])
    if mesh.size > num_devices():
        raise CourseError(
            ngettext(
                "The mesh {mesh} has {count} device.",
                "The mesh {mesh} has {count} devices.",
                mesh.size,
                mesh=mesh,
            ),
            allowed=_("up to {most} devices", most=num_devices()),
            cure=_("Make one of the sizes smaller."),
        )
    name = SCHEMES[scheme](num_devices()).name if scheme in SCHEMES else OWN
    return Plan(name, mesh, state["splits"])


def _require_an_epoch_left(start: Start, epochs: int) -> None:
    done = start.saved.facts["progress"]["epoch"]
    if done >= epochs:
        raise CourseError(
            ngettext(
                "{start}: {count} epoch is done already.",
                "{start}: {count} epochs are done already.",
                done,
                start=start,
            ),
            allowed=_("more epochs in all than that"),
            cure=_("Ask for more epochs than {done}, or choose another start.", done=done),
        )
