"""What the reader of the mesh and layout explorer chooses: its state, its controls, what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
from course_lib.pictures.text import axis_text
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets.controls import Choice, Field, Group, State, numbers

MOST_DEVICES, MOST_DIMS, MOST_AXES, MOST_LENGTH = 16, 3, 3, 9999
# What a page without a kernel offers.
PAGE_MESHES = tuple(
    MeshSpec(zip("xyz", sizes, strict=False))
    for sizes in [(8,), (2, 4), (4, 2), (2, 2, 2), (6,), (2, 3), (3, 2)]
)
PAGE_SHAPES = ((24,), (8, 6), (6, 4), (4, 6, 8))
_NEW_NAMES, _NEW_SIZE, _NEW_LENGTHS = ("x", "y", "z"), 2, (8, 6, 4)


def mesh_of(state: State) -> MeshSpec:
    """Returns the mesh that a state describes.

    Raises:
        CourseError: its sizes make none, or one that is too large.
    """
    mesh = MeshSpec(tuple(dim) for dim in state["mesh"])
    if len(mesh.dims) > MOST_DIMS or mesh.size > MOST_DEVICES:
        raise CourseError(
            _("The explorer cannot show the mesh {mesh}.", mesh=mesh),
            allowed=_(
                "1 to {dims} mesh dimensions and up to {most} devices", dims=MOST_DIMS, most=MOST_DEVICES
            ),
            cure=_("Make one of the sizes smaller."),
        )
    return mesh


def sharding_of(state: State) -> Sharding:
    """Returns the sharding that a state describes.

    Raises:
        CourseError: the mesh, the shape or the layout is illegal.
    """
    layout = LayoutSpec(state["layout"], mesh_of(state))
    for axis, length in enumerate(state["shape"]):
        whole_number(
            length,
            _("Axis {axis} has the length {length!r}.", axis=axis, length=length),
            least=1,
            most=MOST_LENGTH,
            cure=_("Give the number of elements along this axis."),
        )
    return layout.of(state["shape"])


def whole_state(state: State) -> State:
    """Returns a state with as many sizes, lengths and entries as it says, and entries of its own mesh."""
    mesh, shape = list(state["mesh"]), list(state["shape"])
    free = [name for name in _NEW_NAMES if name not in [dim[0] for dim in mesh]]
    while len(mesh) < state["num_dims"]:
        sizes = [size for _name, size in mesh if isinstance(size, int)]
        mesh.append([free.pop(0), _NEW_SIZE if math.prod(sizes) * _NEW_SIZE <= MOST_DEVICES else 1])
    mesh, shape = mesh[: state["num_dims"]], [*shape, *_NEW_LENGTHS[len(shape) :]][: state["num_axes"]]
    entries = [*state["layout"], *[UNSHARDED] * len(shape)][: len(shape)]
    return {
        **state,
        "mesh": mesh,
        "shape": shape,
        "layout": known_entries(entries, mesh),
    }


def page_state(state: State) -> State:
    """Returns the state that a page offers and that is most like this one."""
    mesh, shape = state["mesh"], state["shape"]
    if mesh not in map(as_lists, PAGE_MESHES):
        mesh = as_lists(next((each for each in PAGE_MESHES if len(each.dims) == len(mesh)), PAGE_MESHES[0]))
    if tuple(shape) not in PAGE_SHAPES:
        shape = list(next((each for each in PAGE_SHAPES if len(each) == len(shape)), PAGE_SHAPES[0]))
    return whole_state({**state, "num_dims": len(mesh), "mesh": mesh, "num_axes": len(shape), "shape": shape})


def page_groups(state: State) -> list[Group]:
    """Returns the controls of a page: a few meshes, a few tensors, every layout."""
    meshes = Choice(("mesh",), [(as_lists(mesh), str(mesh)) for mesh in PAGE_MESHES])
    shapes = Choice(("shape",), [(list(shape), str(shape)) for shape in PAGE_SHAPES])
    return [Group(_("Mesh"), [meshes]), Group(_("Tensor"), [shapes]), *_layout_groups(state)]


def notebook_groups(state: State) -> list[Group]:
    """Returns the controls of a notebook: every mesh, tensor and layout."""
    sizes = [
        Field(("mesh", at, 1), name, least=1, most=MOST_DEVICES)
        for at, (name, _size) in enumerate(state["mesh"])
    ]
    lengths = [
        Field(("shape", axis), _("axis {axis}", axis=axis), least=1, most=MOST_LENGTH)
        for axis in range(state["num_axes"])
    ]
    return [
        Group(_("Mesh dimensions"), [numbers(("num_dims",), range(1, MOST_DIMS + 1))]),
        Group(_("Their sizes"), sizes),
        Group(_("Tensor axes"), [numbers(("num_axes",), range(1, MOST_AXES + 1))]),
        Group(_("Their lengths"), lengths),
        *_layout_groups(state),
    ]


def _layout_groups(state: State) -> list[Group]:
    return [
        Group(axis_text(axis, length), [entry_choice(state, "layout", axis)])
        for axis, length in enumerate(state["shape"])
    ]


def entry_choice(state: State, tensor: str, axis: int) -> Choice:
    """Returns the choice of what splits an axis."""
    names = [UNSHARDED, *(name for name, _size in state["mesh"])]
    return Choice((tensor, axis), [(name, name) for name in names])


def known_entries(entries: Sequence[str], mesh: Sequence[Sequence[Any]]) -> list[str]:
    """Returns the entries of a layout, whole where the mesh has no such dimension."""
    names = [name for name, _size in mesh]
    return [name if name in names else UNSHARDED for name in entries]


def as_lists(mesh: MeshSpec) -> list[list[Any]]:
    """Returns a mesh as plain JSON values."""
    return [list(dim) for dim in mesh.dims]
