"""What the reader of the product explorer chooses: its state, its controls, what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.explorers.mesh_layout_state import require_entries, require_mesh
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


def first_state(
    mesh: MeshSpec,
    shapes: Sequence[Sequence[int]],
    left: Sequence[str] | None,
    right: Sequence[str] | None,
    wanted: Sequence[str] | None,
) -> State:
    """Returns the state that the explorer begins with.

    Raises:
        CourseError: one of them is of another kind, or the factors cannot be multiplied.
    """
    require_mesh(mesh)
    first = [UNSHARDED, mesh.names[0]] if left is None else left
    second = [mesh.names[0], UNSHARDED] if right is None else right
    for entries in (first, second, *([] if wanted is None else [wanted])):
        require_entries(entries, mesh, len(_WHOLE))
    return {
        "mesh": _as_lists(mesh),
        "shapes": [list(lengths) for lengths in _checked_shapes(shapes, mesh)],
        "left": list(first),
        "right": list(second),
        "wanted": None if wanted is None else list(wanted),
    }


def mesh_of(state: State) -> MeshSpec:
    """Returns the mesh that a state describes."""
    return MeshSpec(tuple(dim) for dim in state["mesh"])


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


def whole_state(state: State) -> State:
    """Returns a state in which every layout has entries of its own mesh."""
    names = [name for name, _size in state["mesh"]]
    layouts = {
        factor: state[factor] and [name if name in names else UNSHARDED for name in state[factor]]
        for factor in ("left", "right", "wanted")
    }
    return {**state, **layouts}


def page_state(state: State) -> State:
    """Returns the state that a page offers and that is most like this one: it has factors of one size."""
    offered = [_as_lists(mesh) for mesh in MESHES]
    mesh = state["mesh"] if state["mesh"] in offered else offered[0]
    wanted = state["wanted"] if _offers_reader(mesh, page=True) else None
    shapes = [list(lengths) for lengths in SHAPES]
    return whole_state({**state, "mesh": mesh, "shapes": shapes, "wanted": wanted})


def groups(state: State, *, page: bool) -> list[Group]:
    """Returns the meshes, a row of options for each axis, and what the reader of the product wants."""
    meshes = [_as_lists(mesh) for mesh in MESHES]
    if state["mesh"] not in meshes and not page:
        meshes.append(state["mesh"])
    (rows, inner), (_inner, columns) = state["shapes"]
    return [
        Group(
            _("Mesh"),
            [Choice(("mesh",), [(mesh, str(MeshSpec(tuple(dim) for dim in mesh))) for mesh in meshes])],
        ),
        Group(_("Rows of A: {length}", length=rows), [_axis(state, "left", 0)]),
        Group(_("Columns of A: {length}", length=inner), [_axis(state, "left", 1)]),
        Group(_("Rows of B: {length}", length=inner), [_axis(state, "right", 0)]),
        Group(_("Columns of B: {length}", length=columns), [_axis(state, "right", 1)]),
        *(_reader_groups(state) if _offers_reader(state["mesh"], page=page) else []),
    ]


def _reader_groups(state: State) -> list[Group]:
    wanted = state["wanted"]
    options = [(None, _("as it comes")), (wanted or _WHOLE, _("in a layout of its own"))]
    reader = Group(_("What reads AB wants it"), [Choice(("wanted",), options)])
    axes = [
        Group(_("Rows of AB"), [_axis(state, "wanted", 0)]),
        Group(_("Columns of AB"), [_axis(state, "wanted", 1)]),
    ]
    return [reader, *(axes if wanted else [])]


def _axis(state: State, tensor: str, axis: int) -> Choice:
    names = [UNSHARDED, *(name for name, _size in state["mesh"])]
    return Choice((tensor, axis), [(name, name) for name in names])


def _offers_reader(mesh: Sequence[object], *, page: bool) -> bool:
    """Whether the reader of the product can be chosen: on a page only where that makes few states."""
    return not page or len(mesh) == 1


def _as_lists(mesh: MeshSpec) -> list[list[Any]]:
    return [list(dim) for dim in mesh.dims]


def _checked_shapes(shapes: Sequence[Sequence[int]], mesh: MeshSpec) -> Sequence[tuple[int, ...]]:
    """Returns the shapes of two matrices.

    Raises:
        CourseError: they are no such shapes, or these cannot be multiplied.
    """
    whole = LayoutSpec(_WHOLE, mesh)
    first, second = (whole.of(lengths) for lengths in shapes)
    communication.product(first, second)
    return first.global_shape, second.global_shape
