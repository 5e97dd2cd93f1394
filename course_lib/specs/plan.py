"""Plans: which mesh dimension splits which named axis of a model, whatever the model."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding

Axes = tuple[str, ...]
BATCH = "batch"  # the axis of the examples, in every model


@dataclass(frozen=True)
class Plan:
    """A named way to train any model: a mesh, and the axes of the model that its dimensions split.

    The layout of each tensor follows from the names of its axes, so that tensors that meet in one operation
    cannot disagree.

    >>> mesh = MeshSpec([("batch", 4), ("model", 2)])
    >>> plan = Plan("model parallel", mesh, {"batch": "batch", "hidden": "model"})
    >>> print(plan.layout(("batch", "features")), plan.layout(("features", "hidden")))
    [batch, unsharded] [unsharded, model]
    >>> plan.num_shards("batch")
    4

    Attributes:
        name: how the plan is called in tables and legends.
        mesh: the mesh that every layout is on.
        splits: for each axis that is split the mesh dimension that splits it; the others are unsharded.

    Raises:
        CourseError: the mesh has no such dimension.

    Source: https://flax.readthedocs.io/en/latest/guides/flax_gspmd.html (logical axis names).
    """

    name: str
    mesh: MeshSpec
    splits: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        splits = {axis: name for axis, name in self.splits.items() if name != UNSHARDED}
        for name in splits.values():
            self.mesh.dim_size(name)  # raises the error
        object.__setattr__(self, "splits", splits)

    def layout(self, axes: Sequence[str]) -> LayoutSpec:
        """Returns the layout of a tensor with these axes.

        Raises:
            CourseError: one mesh dimension would split two of them.
        """
        for first, second in itertools.combinations(axes, 2):
            name = self.splits.get(first)
            if name is not None and name == self.splits.get(second):
                raise CourseError(
                    _(
                        "In the plan {plan!r} mesh dimension {name!r} would split two axes of the tensor"
                        " [{axes}]: {first!r} and {second!r}.",
                        plan=self.name,
                        name=name,
                        axes=", ".join(axes),
                        first=first,
                        second=second,
                    ),
                    allowed=_("each mesh dimension on one axis of a tensor at most"),
                    cure=_(
                        "Split {second!r} over another mesh dimension, or leave it out of the plan.",
                        second=second,
                    ),
                )
        return LayoutSpec([self.splits.get(axis, UNSHARDED) for axis in axes], self.mesh)

    def shardings(self, tensors: Mapping[str, Axes], sizes: Mapping[str, int]) -> dict[str, Sharding]:
        """Returns each tensor with its layout and its shape.

        Args:
            tensors: the names of each tensor's axes, such as `{"x": ("batch", "features")}`.
            sizes: the size of each axis, such as `{"batch": 64, "features": 1200}`.

        Raises:
            CourseError: a size that does not divide among the places of its mesh dimension, or one mesh
                dimension for two axes of a tensor.
        """
        return {name: self.layout(axes).of([sizes[axis] for axis in axes]) for name, axes in tensors.items()}

    def num_shards(self, axis: str) -> int:
        """Returns into how many parts the mesh splits an axis."""
        return self.mesh.dim_size(self.splits[axis]) if axis in self.splits else 1


def data_parallel(num_devices: int) -> Plan:
    """Returns the plan that splits only the batch: every device holds the whole model."""
    return Plan("data parallel", MeshSpec([("batch", num_devices)]), {"batch": "batch"})
