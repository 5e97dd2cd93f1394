"""Schemes: the tensors of a model as a plan lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from course_lib.pictures.figures import Figure
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.plan import Axes, Plan
from course_lib.specs.sharding import Sharding


@dataclass(frozen=True, repr=False, eq=False)
class Scheme(DrawsItself):
    """Tensors with named axes under one plan. It draws itself.

    >>> from course_lib.specs.plan import model_parallel
    >>> tensors = {"x": ("batch", "features"), "W1": ("features", "hidden")}
    >>> scheme = Scheme(model_parallel(4, 2), tensors, {"batch": 64, "features": 1200, "hidden": 48})
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
        CourseError: as `Plan.shardings`.
    """

    plan: Plan
    tensors: Mapping[str, Axes]
    sizes: Mapping[str, int]
    shardings: Mapping[str, Sharding] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shardings", self.plan.shardings(self.tensors, self.sizes))

    def split_by(self, mesh_dim: str) -> dict[str, tuple[str, ...]]:
        """Returns the axes that a mesh dimension splits, each with the tensors that have it."""
        split = (axis for axis, name in self.plan.splits.items() if name == mesh_dim)
        having = {axis: tuple(name for name, axes in self.tensors.items() if axis in axes) for axis in split}
        return {axis: names for axis, names in having.items() if names}

    def picture(self) -> Figure:
        """Returns the picture of the scheme."""
        from lessons.layouts.splitting_the_model.scheme_picture import scheme_figure

        return scheme_figure(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.tensors)} under the plan {self.plan.name!r}>"
