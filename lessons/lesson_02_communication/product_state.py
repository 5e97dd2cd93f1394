"""What the reader of the product explorer chooses: its state, its controls, what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.explorers.mesh_layout_state import as_lists, entry_choice, known_entries, mesh_of
from course_lib.i18n import _
from course_lib.specs import communication
from course_lib.specs.communication import Communication
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets.controls import Choice, Group, State

MESHES = tuple(MeshSpec(zip("xyz", sizes, strict=False)) for sizes in [(8,), (4, 2), (2, 4), (2, 2, 2)])
SHAPES = ((16, 8), (8, 24))
_WHOLE = [UNSHARDED] * 2


def first_state() -> State:
    """Returns the state that the explorer begins with: the axis that is summed over is split."""
    mesh = MESHES[0]
    return {
        "mesh": as_lists(mesh),
        "shapes": [list(lengths) for lengths in SHAPES],
        "left": [UNSHARDED, mesh.names[0]],
        "right": [mesh.names[0], UNSHARDED],
        "wanted": None,
    }


def factors_of(state: State) -> tuple[Sharding, Sharding]:
    """Returns the two factors that a state describes.

    Raises:
        CourseError: a layout is illegal or does not fit its factor.
    """
    mesh, (first, second) = mesh_of(state), state["shapes"]
    return LayoutSpec(state["left"], mesh).of(first), LayoutSpec(state["right"], mesh).of(second)


def wanted_of(state: State) -> LayoutSpec | None:
    """Returns the layout that the reader of the product wants in a state, or None.

    Raises:
        CourseError: it is illegal.
    """
    return None if state["wanted"] is None else LayoutSpec(state["wanted"], mesh_of(state))


def communication_of(state: State) -> Communication:
    """Returns what devices exchange in a state.

    Raises:
        CourseError: the choice is illegal.
    """
    return communication.product(*factors_of(state), wanted_of(state))


def whole_state(state: State, *, page: bool) -> State:
    """Returns a state in which every layout has entries of its own mesh."""
    layouts = {
        factor: state[factor] and known_entries(state[factor], state["mesh"])
        for factor in ("left", "right", "wanted")
    }
    wanted = layouts["wanted"] if _offers_reader(state["mesh"], page=page) else None
    return {**state, **layouts, "wanted": wanted}


def groups(state: State, *, page: bool) -> list[Group]:
    """Returns the meshes, a row of options for each axis, and what the reader of the product wants."""
    meshes = [(as_lists(mesh), str(mesh)) for mesh in MESHES]
    (rows, inner), (_inner, columns) = state["shapes"]
    return [
        Group(_("Mesh"), [Choice(("mesh",), meshes)]),
        Group(_("Rows of A: {length}", length=rows), [entry_choice(state, "left", 0)]),
        Group(_("Columns of A: {length}", length=inner), [entry_choice(state, "left", 1)]),
        Group(_("Rows of B: {length}", length=inner), [entry_choice(state, "right", 0)]),
        Group(_("Columns of B: {length}", length=columns), [entry_choice(state, "right", 1)]),
        *(_reader_groups(state) if _offers_reader(state["mesh"], page=page) else []),
    ]


def _reader_groups(state: State) -> list[Group]:
    wanted = state["wanted"]
    options = [(None, _("as it comes")), (wanted or _WHOLE, _("in a layout of its own"))]
    reader = Group(_("What reads AB wants it"), [Choice(("wanted",), options)])
    if wanted is None:
        return [reader]
    return [
        reader,
        Group(_("Rows of AB"), [entry_choice(state, "wanted", 0)]),
        Group(_("Columns of AB"), [entry_choice(state, "wanted", 1)]),
    ]


def _offers_reader(mesh: Sequence[object], *, page: bool) -> bool:
    """Whether the reader of the product can be chosen: on a page only where that makes few states."""
    return not page or len(mesh) == 1
