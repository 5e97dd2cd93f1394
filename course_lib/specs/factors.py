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
        CourseError: they are no matrices, their inner lengths differ, or two mesh dimensions
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
        CourseError: the layout names another mesh dimension there.
    """
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
