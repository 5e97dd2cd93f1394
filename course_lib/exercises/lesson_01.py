"""The exercises of lesson 01."""

from __future__ import annotations

from course_lib.exercises.checks import exercise, same
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

_TWO_BY_FOUR = MeshSpec([("batch", 2), ("model", 4)])
_WEIGHT_BYTES = 1200 * 48 * 4


@exercise(
    "01-four-copies",
    right=LayoutSpec(["batch", UNSHARDED], _TWO_BY_FOUR),
    wrong=[
        (LayoutSpec(["model", UNSHARDED], _TWO_BY_FOUR), "the shape (2, 8)"),
        (LayoutSpec([UNSHARDED, "batch"], _TWO_BY_FOUR), "the shape (8, 4)"),
        (LayoutSpec(["batch", "model"], _TWO_BY_FOUR), "the shape (4, 2)"),
        (LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])), "exercise_mesh"),
        (LayoutSpec(["batch"], _TWO_BY_FOUR), "1 axis"),
        (["batch", UNSHARDED], "LayoutSpec"),
    ],
)
def four_copies(answer: LayoutSpec) -> str | None:
    """A layout of local shape (4, 8) with four copies."""
    if answer.mesh != _TWO_BY_FOUR:
        return _("Use exercise_mesh: its dimensions are batch 2 and model 4.")
    local_shape = answer.local_shape((8, 8))
    if local_shape != (4, 8):
        return _(
            "Under this layout a device holds a block of the shape {local_shape}."
            " Which mesh dimension halves the rows and leaves the columns whole?",
            local_shape=local_shape,
        )
    return None


@exercise(
    "01-bytes",
    right=_WEIGHT_BYTES // 4,
    wrong=[
        (_WEIGHT_BYTES, "whole weight"),
        (_WEIGHT_BYTES // 8, "batch does not split"),
        (_WEIGHT_BYTES // 16, "elements"),
        (_WEIGHT_BYTES // 2, "only one axis"),
        (12345, "local shape first"),
    ],
)
def bytes_on_one_device(answer: float) -> str | None:
    """The bytes of a (600, 24) float32 shard."""
    hints = {
        _WEIGHT_BYTES: _("That is the whole weight. How many parts do feature and model make of it?"),
        _WEIGHT_BYTES // 2: _("That divides only one axis; the layout splits both."),
        _WEIGHT_BYTES // 8: _("The dimension batch does not split the weight: it makes copies of it."),
        _WEIGHT_BYTES // 16: _("That is the number of elements. How many bytes does a float32 take?"),
    }
    for wrong, hint in hints.items():
        if same(answer, wrong):
            return hint
    if not same(answer, _WEIGHT_BYTES // 4):
        return _("Find the local shape first, multiply its axes, then count 4 bytes for each element.")
    return None


@exercise(
    "01-components",
    right=[[10, 20], [30, 40], [10, 20], [30, 40]],
    wrong=[
        ([[10, 20], [10, 20], [30, 40], [30, 40]], "last mesh dimension changes fastest"),
        ([[10], [20], [30], [40]], "two parts"),
        ([[10, 20], [30, 40]], "4 components"),
        ([[10, 20, 30, 40]] * 4, "two parts"),
        ([[10.9, 20], [30, 40], [10, 20], [30, 40]], "position of each device"),
        ([10, 20, 30, 40], "In each place"),
    ],
)
def four_components(answer: tuple[tuple[float, ...], ...]) -> str | None:
    """The components of a vector of four under [y] on a 2 x 2 mesh."""
    if len(answer) != 4:
        return _("Give 4 components, one for each device of the mesh; replicas count too.")
    if any(len(component) != 2 for component in answer):
        return _("The dimension y has the size 2: it cuts the vector into two parts of two elements.")
    if same(answer, [[10, 20], [10, 20], [30, 40], [30, 40]]):
        return _(
            "These are the components under [x]. The last mesh dimension changes fastest:"
            " devices 0 and 1 differ along y."
        )
    if not same(answer, [[10, 20], [30, 40], [10, 20], [30, 40]]):
        return _("Find the position of each device along y; it says which part the device holds.")
    return None


@exercise(
    "01-one-copy-mesh",
    right=MeshSpec([("x", 2), ("y", 4)]),
    wrong=[
        (MeshSpec([("x", 4), ("y", 2)]), "does not divide"),
        (MeshSpec([("x", 3), ("y", 2)]), "6 devices"),
        (MeshSpec([("x", 8), ("y", 1)]), "does not divide"),
        (MeshSpec([("rows", 2), ("columns", 4)]), "x and y"),
        ((2, 4), "MeshSpec"),
    ],
)
def one_copy_mesh(answer: MeshSpec) -> str | None:
    """A mesh of 8 devices over which (6, 4) is fully sharded."""
    if answer.names != ("x", "y"):
        return _("The mesh needs the dimensions x and y, in this order.")
    if answer.size != 8:
        return ngettext(
            "This mesh has {count} device; it needs 8.",
            "This mesh has {count} devices; it needs 8.",
            answer.size,
        )
    for length, size in zip((6, 4), answer.sizes, strict=True):
        if length % size:
            return _("An axis of {length} does not divide by {size}.", length=length, size=size)
    return None
