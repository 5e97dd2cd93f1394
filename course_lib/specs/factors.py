"""Which products and relayouts of matrices can be told beforehand, and which products DTensor refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED

if TYPE_CHECKING:
    from course_lib.specs.layout import LayoutSpec
    from course_lib.specs.sharding import Sharding

_MATRIX_AXES = 2


def require_factors(left: Sharding, right: Sharding) -> None:
    """Checks that two laid-out matrices can be multiplied: `A @ B`.

    Args:
        left: `A`, of the shape `[rows, inner] global`.
        right: `B`, of the shape `[inner, columns] global`.

    Raises:
        CourseError: they are no matrices, their inner lengths or their meshes differ, or two mesh dimensions
            split the inner axis.
    """
    shapes = left.global_shape, right.global_shape
    matrices = all(each.layout.num_axes == _MATRIX_AXES for each in (left, right))
    if not matrices or shapes[0][1] != shapes[1][0]:
        raise CourseError(
            _(
                "A matrix of shape {left} cannot be multiplied by one of shape {right}.",
                left=shapes[0],
                right=shapes[1],
            ),
            allowed=_("as many columns in the first matrix as rows in the second"),
            cure=_("Make the inner lengths equal."),
        )
    if left.mesh != right.mesh:
        raise CourseError(
            _("The factors are on different meshes: {left} and {right}.", left=left.mesh, right=right.mesh),
            allowed=_("one mesh for both"),
            cure=_("Lay both out on the same mesh."),
        )
    inner = left.layout.sharding_specs[1], right.layout.sharding_specs[0]
    if UNSHARDED not in inner and inner[0] != inner[1]:
        raise CourseError(
            _(
                "The inner axis is split over {first} in one factor and over {second} in the other.",
                first=inner[0],
                second=inner[1],
            ),
            allowed=_("one mesh dimension for the axis that is summed over"),
            cure=_("Split it over the same mesh dimension in both, or leave it unsharded in one."),
        )


def require_wanted(left: Sharding, right: Sharding, wanted: LayoutSpec) -> None:
    """Checks that DTensor can give a product the layout that its one reader wants.

    Where one mesh dimension splits the rows of A and the columns of B, it plans the product in the wanted
    layout, but looks for the split of the factors in it ("Non-contracting dimension").

    Raises:
        CourseError: the layout is no matrix's or on another mesh, or it names another mesh dimension there.
    """
    if wanted.num_axes != _MATRIX_AXES or wanted.mesh != left.mesh:
        raise CourseError(
            _("The product cannot have the layout {layout} on {mesh}.", layout=wanted, mesh=wanted.mesh),
            allowed=_("layouts of two axes on the mesh of the factors, {mesh}", mesh=left.mesh),
            cure=_("Give the rows and the columns a dimension of that mesh each, or leave them unsharded."),
        )
    rows, columns = left.layout.sharding_specs[0], right.layout.sharding_specs[1]
    others = {*wanted.sharded_dims} - {rows}
    if rows == columns != UNSHARDED and others:
        raise CourseError(
            _(
                "{name!r} splits the rows of the first matrix and the columns of the second; the product is"
                " wanted as {wanted}, split over {others}.",
                name=rows,
                wanted=wanted,
                others=_(", ").join(sorted(map(repr, others))),
            ),
            allowed=f"[unsharded, unsharded], [{rows}, unsharded], [unsharded, {rows}]",
            cure=_("Relayout the product to one of these first, and then to the layout that you want."),
        )


def require_relayout(source: Sharding, target: LayoutSpec) -> None:
    """Checks that it is known what devices exchange to give a tensor another layout.

    Raises:
        CourseError: the tensor has three axes or more, or the layout is on another mesh.
    """
    if target.num_axes > _MATRIX_AXES:
        raise CourseError(
            _("What a relayout of the shape {shape} takes is not known.", shape=source.global_shape),
            allowed=_("tensors of at most two axes"),
            cure=_("See what really runs: course_lib.observed tells."),
        )
    if source.mesh != target.mesh:
        raise CourseError(
            _(
                "The tensor is on the mesh {mesh}; the layout is on {other}.",
                mesh=source.mesh,
                other=target.mesh,
            ),
            allowed=_("one mesh for both"),
            cure=_("Write the layout for the mesh that the tensor is on."),
        )
