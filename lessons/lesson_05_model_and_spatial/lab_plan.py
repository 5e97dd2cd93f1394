"""The plan that the reader of the training lab chooses: a scheme, or a mesh and what it splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.widgets.controls import Choice, Group, Number, State

ONE_DEVICE, OWN = "one device", "own"
SCHEMES: Mapping[str, Callable[[int], Plan]] = {
    "data": data_parallel,
    "model": lambda devices: model_parallel(max(devices // 2, 1), 2),
    "spatial": lambda devices: spatial_parallel(max(devices // 4, 1), 2, 2),
}
MOST_DIMS = 3
_NEW_NAMES = ("batch", "model", "feature", "x")  # one more than dimensions, as some are taken


def first_state(scheme: str, axes: Sequence[str], devices: int) -> State:
    """Returns the state of a scheme, or of one device, before the reader has chosen."""
    begin = {"scheme": scheme, "laid_out": "", "num_dims": 1, "mesh": [], "splits": {}}
    return settled(settled({**begin, "scheme": "data"}, axes, devices) | {"scheme": scheme}, axes, devices)


def settled(state: State, axes: Sequence[str], devices: int) -> State:
    """Returns a state whose mesh and splits are those of its scheme, or whose scheme is "own"."""
    if state["scheme"] != state["laid_out"]:  # it was just chosen
        state = {**state, **_laid_out(state["scheme"], axes, devices)}
    mesh = [*state["mesh"], *_new_dims(state)][: state["num_dims"]]
    names = [name for name, _size in mesh]
    splits = {axis: name if name in names else UNSHARDED for axis, name in state["splits"].items()}
    scheme = state["scheme"]
    if scheme in SCHEMES:
        plan = SCHEMES[scheme](devices)
        if names != list(plan.mesh.names) or splits != _splits(plan, axes):
            scheme = OWN
    return {**state, "mesh": mesh, "splits": splits, "scheme": scheme, "laid_out": scheme}


def plan_of(state: State, devices: int) -> Plan | None:
    """Returns the plan that was chosen; None for one device.

    Raises:
        CourseError: the sizes make no mesh, or one of more devices than there are.
    """
    if state["scheme"] == ONE_DEVICE:
        return None
    mesh = MeshSpec(tuple(dim) for dim in state["mesh"])
    if mesh.size > devices:
        raise CourseError(
            ngettext(
                "The mesh {mesh} has {count} device.",
                "The mesh {mesh} has {count} devices.",
                mesh.size,
                mesh=mesh,
            ),
            allowed=_("up to {most} devices", most=devices),
            cure=_("Make one of the sizes smaller."),
        )
    scheme = state["scheme"]
    name = SCHEMES[scheme](devices).name if scheme in SCHEMES else OWN
    return Plan(name, mesh, state["splits"])


def groups(state: State, *, page: bool) -> list[Group]:
    """Returns the controls of the plan; on a page the schemes alone."""
    schemes = [(ONE_DEVICE, _("one device")), *((name, _scheme_name(name)) for name in SCHEMES)]
    own = [] if page else [(OWN, _("your own"))]
    chosen = Group(_("Scheme"), [Choice(("scheme",), [*schemes, *own])])
    if page or state["scheme"] == ONE_DEVICE:
        return [chosen]
    counts = [(count, str(count)) for count in range(1, MOST_DIMS + 1)]
    names = [name for name, _size in state["mesh"]]
    sizes = [Number(("mesh", at, 1), name, least=1) for at, name in enumerate(names)]
    options = [(name, name) for name in (UNSHARDED, *names)]
    return [
        chosen,
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
    known = {SCHEMES[name](8).name: _scheme_name(name) for name in SCHEMES}
    splits = _(", ").join(f"{axis} → {name}" for axis, name in plan.splits.items())
    return _("{plan} on {mesh}", plan=known.get(plan.name) or splits or _("all unsharded"), mesh=plan.mesh)


def _scheme_name(name: str) -> str:
    return {
        "data": _("data parallel"),
        "model": _("model parallel"),
        "spatial": _("spatial parallel"),
    }[name]


def _laid_out(scheme: str, axes: Sequence[str], devices: int) -> State:
    if scheme not in SCHEMES:  # the mesh and the splits stay as they were
        return {}
    plan = SCHEMES[scheme](devices)
    mesh = [list(dim) for dim in plan.mesh.dims]
    return {"num_dims": len(mesh), "mesh": mesh, "splits": _splits(plan, axes)}


def _splits(plan: Plan, axes: Sequence[str]) -> dict[str, str]:
    return {axis: plan.splits.get(axis, UNSHARDED) for axis in axes}


def _new_dims(state: State) -> list[list[object]]:
    taken = [name for name, _size in state["mesh"]]
    return [[name, 1] for name in _NEW_NAMES if name not in taken]
