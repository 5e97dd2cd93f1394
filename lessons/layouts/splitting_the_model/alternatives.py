"""One tensor under several plans, in small pictures side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging
from course_lib.pictures.figures import Figure, headed
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.plan import Axes, Plan
from lessons.layouts.scheme import Scheme, drawn, heading, notes_of

_GAP, _WIDTH = 16.0, 500.0


class Alternatives(DrawsItself):
    """A tensor as each of several plans lays it out. It draws itself.

    Args:
        name: of the tensor.
        axes: the names of its axes.
        sizes: of these axes.
        plans: whose names stand above the pictures.
    """

    def __init__(self, name: str, axes: Axes, sizes: Mapping[str, int], plans: Sequence[Plan]) -> None:
        self.name = name
        self.schemes = [Scheme(plan, {name: axes}, sizes) for plan in plans]

    def picture(self) -> Figure:
        """Returns the pictures in one row."""
        name, schemes = self.name, self.schemes
        mesh = schemes[0].plan.mesh
        title = _("Ways to lay out {tensor} on the mesh {mesh}", tensor=heading(schemes[0], name), mesh=mesh)
        column = (_WIDTH - _GAP * (len(schemes) - 1)) / len(schemes)
        drawings, colours = [], 0
        for each in schemes:
            drawings.append(drawn(each, name, each.plan.name, column, first=colours))
            num_blocks = len(each.shardings[name].blocks)
            colours += num_blocks if num_blocks > 1 else 0
        words = [line for each in schemes for line in ("", each.plan.name, *notes_of(each, name))]
        says = [_("The numbers in a block are the devices that hold it.")]
        return headed(title, [arranging.beside(drawings, _GAP)], [*says, *words], width=_WIDTH, says=says)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"
