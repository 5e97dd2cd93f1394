"""What the reader of the training lab chooses: a plan, batch size, learning rate, epochs, where to start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _, ngettext
from course_lib.runtime import num_devices
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.widgets.controls import Choice, Field, Group, State
from lessons.layouts.any_mesh.lab_runs import LabRun, Setting

ONE_DEVICE, OWN = "one device", "own"
FRESH = ""  # the start from initial values
_MOST_DIMS = 3
_NEW_NAMES = ("batch", "model", "feature", "x")  # one more than dimensions, as some are taken
_NUMBERS = {"learning_rate": 3e-3, "epochs": 3}
_KEPT = ("batch_size", "learning_rate")  # what a training that goes on does not change


@dataclass(frozen=True)
class Subject:
    """What a lab trains, the same in all its runs.

    Attributes:
        meshes: for each scheme its mesh dimensions with their sizes, such as `[("batch", 8)]`.
        splits: for each axis that may be split the mesh dimension that splits it, if the mesh has it.
        axes: for each tensor the names of its axes; `x` and `y` are a batch, the others variables.
        sizes: the size of each axis; that of the batch is chosen at first.
        num_examples: the number of training examples.
    """

    meshes: Mapping[str, Sequence[tuple[str, int]]]
    splits: Mapping[str, str]
    axes: Mapping[str, Axes]
    sizes: Mapping[str, int]
    num_examples: int

    def scheme(self, name: str) -> Plan | None:
        """Returns the plan of a scheme; None if it is none of the schemes."""
        if name not in self.meshes:
            return None
        mesh = MeshSpec(self.meshes[name])
        return Plan(name, mesh, {axis: dim for axis, dim in self.splits.items() if dim in mesh.names})

    def sizes_with(self, batch_size: int) -> dict[str, int]:
        """Returns the size of each axis for a batch of another size."""
        return {**self.sizes, BATCH: batch_size}


def first_state(scheme: str, subject: Subject) -> State:
    """Returns the state of a scheme, or of one device, before the reader has chosen."""
    begin = {"scheme": next(iter(subject.meshes)), "laid_out": "", "num_dims": 1, "mesh": [], "splits": {}}
    numbers = {"batch_size": subject.sizes[BATCH], **_NUMBERS}
    state = {**_laid_out(begin, subject), **numbers, "start": FRESH}
    return _laid_out({**state, "scheme": scheme}, subject)


def settled(state: State, subject: Subject, starts: Mapping[str, LabRun]) -> State:
    """Returns the state made whole: a training that goes on keeps its settings."""
    state = _laid_out(state, subject)
    if state["start"] not in starts:
        return {**state, "start": FRESH}
    kept = starts[state["start"]].setting
    return {**state, **{name: getattr(kept, name) for name in _KEPT}}


def _laid_out(state: State, subject: Subject) -> State:
    """Returns a state whose mesh and splits are those of its scheme, or whose scheme is "own"."""
    scheme = state["scheme"]
    plan = subject.scheme(scheme)
    splits = {axis: plan.splits.get(axis, UNSHARDED) for axis in subject.splits} if plan else {}
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


def groups(state: State, subject: Subject, starts: Mapping[str, LabRun], *, page: bool) -> list[Group]:
    """Returns the controls; on a page the schemes alone."""
    schemes = [(ONE_DEVICE, _("one device")), *((name, _told(name)) for name in subject.meshes)]
    if page:
        return [Group(_("Scheme"), [Choice(("scheme",), schemes)])]
    options = [(FRESH, _("initial values")), *((name, run.at_step) for name, run in starts.items())]
    numbers = [Field(("epochs",), _("epochs in all"), least=1)]
    if state["start"] not in starts:
        numbers = [
            Field(("batch_size",), _("batch size"), least=1),
            Field(("learning_rate",), _("learning rate"), least=0, step="any"),
            *numbers,
        ]
    return [
        Group(_("Scheme"), [Choice(("scheme",), [*schemes, (OWN, _("your own"))])]),
        *([] if state["scheme"] == ONE_DEVICE else _mesh_groups(state)),
        Group(_("Start from"), [Choice(("start",), options)]),
        Group(_("Training"), numbers),
    ]


def _mesh_groups(state: State) -> list[Group]:
    names = [name for name, _size in state["mesh"]]
    counts = [(count, str(count)) for count in range(1, _MOST_DIMS + 1)]
    options = [(name, name) for name in (UNSHARDED, *names)]
    sizes = [Field(("mesh", at, 1), name, least=1) for at, name in enumerate(names)]
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
    splits = _(", ").join(f"{axis} → {name}" for axis, name in plan.splits.items())
    name = _told(plan.name) if plan.name != OWN else splits or _("all unsharded")
    return _("{plan} on {mesh}", plan=name, mesh=plan.mesh)


def _told(scheme: str) -> str:
    names = {"data": _("data parallel"), "model": _("model parallel"), "spatial": _("spatial parallel")}
    return names.get(scheme, scheme)


def setting_of(state: State, subject: Subject, starts: Mapping[str, LabRun]) -> Setting:
    """Returns the training that a state asks for.

    Raises:
        CourseError: the plan, the batch, the learning rate, the number of epochs or the start is impossible.
    """
    plan, start = _plan_of(state), starts.get(state["start"])
    batch_size = whole_number(
        state["batch_size"],
        _("{batch_size!r} cannot be the size of a batch.", batch_size=state["batch_size"]),
        least=1,
        most=subject.num_examples,
        cure=_("Give the number of examples in a batch, for example 64."),
    )
    if plan is not None:
        plan.shardings(subject.axes, subject.sizes_with(batch_size))
    done = 0 if start is None else start.step // (subject.num_examples // batch_size)
    epochs = whole_number(
        state["epochs"],
        _("{epochs!r} epochs cannot be trained.", epochs=state["epochs"]),
        least=done + 1,
        cure=_("Give the number of epochs in all, for example epochs=3."),
    )
    return Setting(plan, batch_size, _learning_rate(state["learning_rate"]), epochs, start)


def _plan_of(state: State) -> Plan | None:
    """Returns the plan that was chosen; None for one device."""
    if state["scheme"] == ONE_DEVICE:
        return None
    mesh = MeshSpec(tuple(dim) for dim in state["mesh"])
    problem = ngettext(
        "The mesh {mesh} has {count} device.", "The mesh {mesh} has {count} devices.", mesh.size, mesh=mesh
    )
    whole_number(mesh.size, problem, most=num_devices(), cure=_("Make one of the sizes smaller."))
    return Plan(state["scheme"], mesh, state["splits"])


def _learning_rate(value: float) -> float:
    if not (isinstance(value, Real) and math.isfinite(value) and value > 0):
        raise CourseError(
            _("{learning_rate!r} cannot be a learning rate.", learning_rate=value),
            allowed=_("finite numbers above 0"),
            cure=_("Give a small number, such as 0.003."),
        )
    return float(value)
