"""Schemes: the tensors of a model as a plan lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.sharding import Sharding

if TYPE_CHECKING:
    from course_lib.specs.plan import Axes, Plan


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Scheme(DrawsItself):
    """Tensors with named axes under one plan: `plan.of(tensors, sizes)`. It draws itself.

    >>> from course_lib.specs.plan import model_parallel
    >>> tensors = {"x": ("batch", "features"), "W1": ("features", "hidden")}
    >>> scheme = model_parallel(4, 2).of(tensors, {"batch": 64, "features": 1200, "hidden": 48})
    >>> {name: sharding.local_shape for name, sharding in scheme.shardings.items()}
    {'x': (16, 1200), 'W1': (1200, 24)}
    >>> scheme.split_by("model")
    {'hidden': ('W1',)}

    Attributes:
        plan: the mesh, and which of its dimensions splits which axis.
        tensors: the names of each tensor's axes.
        sizes: the size of each axis.
        shardings: each tensor with its layout and its shape.

    Raises:
        CourseError: no tensor, an axis without a size, a size that does not divide among the places of its
            mesh dimension, or one mesh dimension for two axes of a tensor.
    """

    drawn_by = "course_lib.pictures.scheme"

    plan: Plan
    tensors: Mapping[str, Axes]
    sizes: Mapping[str, int]
    shardings: Mapping[str, Sharding]

    def __init__(self, plan: Plan, tensors: Mapping[str, Axes], sizes: Mapping[str, int]) -> None:
        if not tensors:
            raise CourseError(
                _("There is no tensor to lay out."),
                allowed=_("one tensor or more, each with the names of its axes"),
                cure=_("Give for example {example}.", example="{'x': ('batch', 'features')}"),
            )
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "tensors", MappingProxyType(dict(tensors)))
        object.__setattr__(self, "sizes", MappingProxyType(dict(sizes)))
        object.__setattr__(self, "shardings", MappingProxyType(self._shardings()))

    def split_by(self, mesh_dim: str) -> dict[str, tuple[str, ...]]:
        """Returns the axes that a mesh dimension splits, each with the tensors that have it."""
        split = (axis for axis, name in self.plan.splits.items() if name == mesh_dim)
        having = {axis: tuple(name for name, axes in self.tensors.items() if axis in axes) for axis in split}
        return {axis: names for axis, names in having.items() if names}

    def _shardings(self) -> dict[str, Sharding]:
        return {name: self.plan.layout(axes).of(self._shape(axes)) for name, axes in self.tensors.items()}

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        for axis in axes:
            one_of(
                axis,
                self.sizes,
                _("The axis {axis!r} has no size.", axis=axis),
                cure=_("Give the size of each axis, such as {example}.", example="{'batch': 64}"),
            )
        return tuple(self.sizes[axis] for axis in axes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.tensors)} under the plan {self.plan.name!r}>"
