"""The step explorer: choose a plan, and step through a training step of the course's classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from course_lib.errors import one_of
from course_lib.explorers.stepping import SteppingExplorer
from course_lib.i18n import _, language, later
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Plan
from course_lib.specs.step import Event
from course_lib.widgets.controls import Choice, Group, State
from lessons.layouts.classifier_step import classifier_step

SIZES = {BATCH: 64, "features": 1200, "hidden": 48, "classes": 2}
SPLITS = {
    BATCH: "batch",
    "features": "feature",
    "hidden": "model",
}  # an axis, and what splits it in the schemes
MESHES = {
    "data": MeshSpec([("batch", 8)]),
    "model": MeshSpec([("batch", 4), ("model", 2)]),
    "spatial": MeshSpec([("batch", 2), ("feature", 2), ("model", 2)]),
}


class StepExplorer(SteppingExplorer):
    """Lets the reader step through a training step of the course's classifier under any plan.

    Args:
        scheme: the mesh that is shown first, with what it splits: `"data"`, `"model"` or `"spatial"`.
        normalized: whether the classifier has batch normalization at first.

    Raises:
        CourseError: another scheme.
    """

    name = "step"
    title = later("A training step, device by device")

    def __init__(self, scheme: str = "data", *, normalized: bool = False) -> None:
        problem = _("There is no scheme {scheme!r}.", scheme=scheme)
        one_of(scheme, MESHES, problem, cure=_("Use one of these names."))
        super().__init__({**_scheme(scheme), "normalized": normalized})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the mesh, what splits each axis, the network, and the two moves."""
        return self._groups(state, page=False)

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the same, where an axis is split as in the schemes or not at all."""
        return self._groups(state, page=True)

    def settled(self, state: State) -> State:
        """Returns the state after a move, or the first event of another mesh."""
        return super().settled(
            state if state["mesh"] == state["laid_out"] else {**state, **_scheme(state["mesh"])}
        )

    def page_settled(self, state: State) -> State:
        """Returns the state with no other splits than those of the schemes."""
        splits = {axis: dim if dim == SPLITS[axis] else UNSHARDED for axis, dim in state["splits"].items()}
        return self.settled({**state, "splits": splits})

    def mesh(self, state: State) -> MeshSpec:
        """Returns the chosen mesh."""
        return MESHES[state["mesh"]]

    def events(self, state: State) -> list[Event]:
        """Returns what happens in the step."""
        return _events(state["mesh"], tuple(state["splits"].items()), state["normalized"], language())

    def _groups(self, state: State, *, page: bool) -> Sequence[Group]:
        offered = {axis: [UNSHARDED, *self.mesh(state).names] for axis in SPLITS}
        if page:
            offered = {
                axis: [dim for dim in dims if dim in (UNSHARDED, SPLITS[axis])]
                for axis, dims in offered.items()
            }
        normalized = Choice(("normalized",), [(False, _("without")), (True, _("with"))])
        return [
            Group(_("Mesh"), [Choice(("mesh",), [(name, str(mesh)) for name, mesh in MESHES.items()])]),
            *(
                Group(_("Axis `{axis}`", axis=axis), [Choice(("splits", axis), [(dim, dim) for dim in dims])])
                for axis, dims in offered.items()
                if len(dims) > 1
            ),
            Group(_("Batch normalization"), [normalized]),
            self.moves(state),
        ]


@cache
def _events(mesh: str, splits: tuple[tuple[str, str], ...], normalized: bool, _language: str) -> list[Event]:
    return classifier_step(Plan(mesh, MESHES[mesh], dict(splits)), SIZES, normalized=normalized)


def _scheme(name: str) -> State:
    """Returns the state of a scheme before the reader has chosen."""
    splits = {axis: dim if dim in MESHES[name].names else UNSHARDED for axis, dim in SPLITS.items()}
    return {"mesh": name, "laid_out": name, "splits": splits, "event": 0}
