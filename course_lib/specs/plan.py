"""Plans: which layout each tensor of the sentiment MLP gets, and why some choices cannot work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

# Each tensor that a plan lays out, and how many axes it has.
NUM_AXES = MappingProxyType(
    {
        "inputs": 2,  # [batch, features] global
        "labels": 1,  # [batch] global
        "hidden_weight": 2,  # [features, hidden] global
        "hidden_bias": 1,  # [hidden] global; the moving moments have this layout too
        "logits_weight": 2,  # [hidden, classes] global
        "logits_bias": 1,  # [classes] global
    }
)

# Pairs of (tensor, axis) that walk together through the model: a contraction may leave one of the two
# unsharded; a tensor that is added or compared element by element must be laid out like the other.
_CONTRACTED = ((("inputs", 1), ("hidden_weight", 0)), (("hidden_weight", 1), ("logits_weight", 0)))
_ALIKE = (
    (("labels", 0), ("inputs", 0)),
    (("hidden_bias", 0), ("hidden_weight", 1)),
    (("logits_bias", 0), ("logits_weight", 1)),
)
# Both axes of the logits, [batch, classes]: one mesh dimension cannot split both. (Batch and hidden units
# may share one: DTensor then gathers the weight for the product, as in fully sharded data parallelism.)
_CROSSED = ((("inputs", 0), ("logits_weight", 1)),)

TensorAxis = tuple[str, int]


@dataclass(frozen=True)
class Plan:
    """A named way to train the sentiment MLP: a mesh, and a layout for each of its tensors.

    >>> plan = data_parallel(8)
    >>> print(plan.layouts["inputs"], plan.layouts["hidden_weight"])
    [batch, unsharded] [unsharded, unsharded]
    >>> plan.batch_shards
    8

    Attributes:
        name: how the plan is called in tables and legends.
        mesh: the mesh that every layout is on.
        layouts: the layout of each of `NUM_AXES`.

    Raises:
        CourseError: a layout is missing, unknown, on another mesh or of another number of axes, or two
            layouts cannot meet in one operation.

    Source: https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial (layouts of an MLP).
    """

    name: str
    mesh: MeshSpec
    layouts: Mapping[str, LayoutSpec] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layouts", MappingProxyType(dict(self.layouts)))
        self._check_names()
        for tensor, layout in self.layouts.items():
            self._check_layout(tensor, layout)
        for first, second in _ALIKE:
            self._check_alike(first, second)
        for first, second in _CONTRACTED:
            self._check_contracted(first, second)
        for first, second in _CROSSED:
            self._check_crossed(first, second)

    @property
    def batch_shards(self) -> int:
        """Into how many parts the mesh splits a batch."""
        return self.layouts["inputs"].num_shards(0)

    def require_batch(self, batch_size: int) -> None:
        """Checks that a batch can be split evenly.

        Args:
            batch_size: the number of examples in the global batch.

        Raises:
            CourseError: `batch_size` is no positive whole number that divides by `batch_shards`.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < 1:
            raise CourseError(
                _("{batch_size!r} cannot be the size of a batch.", batch_size=batch_size),
                allowed=_("whole numbers from 1 that divide by {num_shards}", num_shards=self.batch_shards),
                cure=_("Give the number of examples in a batch, for example 64."),
            )
        if batch_size % self.batch_shards:
            nearest = max(batch_size // self.batch_shards, 1) * self.batch_shards
            raise CourseError(
                _(
                    "A batch of {batch_size} does not divide among the {num_shards} places of mesh dimension"
                    " {name!r}.",
                    batch_size=batch_size,
                    num_shards=self.batch_shards,
                    name=self._dim(("inputs", 0)),
                ),
                allowed=_("batch sizes that divide by {num_shards}", num_shards=self.batch_shards),
                cure=_(
                    "Use for example {lower} or {upper}, or a mesh with fewer devices along {name!r}.",
                    lower=nearest,
                    upper=nearest + self.batch_shards,
                    name=self._dim(("inputs", 0)),
                ),
            )

    def _dim(self, at: TensorAxis) -> str:
        tensor, axis = at
        return self.layouts[tensor].sharding_specs[axis]

    def _check_names(self) -> None:
        for tensor in [*self.layouts, *NUM_AXES]:
            if tensor not in NUM_AXES or tensor not in self.layouts:
                raise CourseError(
                    _("The plan lays out a tensor {tensor!r} that the model lacks.", tensor=tensor)
                    if tensor not in NUM_AXES
                    else _("The plan has no layout for {tensor!r}.", tensor=tensor),
                    allowed=", ".join(NUM_AXES),
                    cure=_("Give one layout for each of these."),
                )

    def _check_layout(self, tensor: str, layout: LayoutSpec) -> None:
        if layout.mesh != self.mesh:
            raise CourseError(
                _(
                    "The layout of {tensor!r} is on the mesh {other}, the plan on {mesh}.",
                    tensor=tensor,
                    other=layout.mesh,
                    mesh=self.mesh,
                ),
                allowed=_("layouts on one mesh"),
                cure=_("Make every layout with the plan's mesh."),
            )
        if layout.num_axes != NUM_AXES[tensor]:
            raise CourseError(
                _(
                    "The layout {layout} of {tensor!r} has {given} axes.",
                    layout=layout,
                    tensor=tensor,
                    given=layout.num_axes,
                ),
                allowed=_("a layout of {num_axes} axes for this tensor", num_axes=NUM_AXES[tensor]),
                cure=_('Give each axis a mesh dimension or "unsharded".'),
            )

    def _check_alike(self, first: TensorAxis, second: TensorAxis) -> None:
        if self._dim(first) != self._dim(second):
            raise CourseError(
                self._meeting(first, second),
                allowed=_("the same for both: these two axes are matched element by element"),
                cure=_(
                    "Give axis {axis} of {tensor!r} the entry {name!r}.",
                    axis=first[1],
                    tensor=first[0],
                    name=self._dim(second),
                ),
            )

    def _check_contracted(self, first: TensorAxis, second: TensorAxis) -> None:
        if UNSHARDED not in (self._dim(first), self._dim(second)) and self._dim(first) != self._dim(second):
            raise CourseError(
                self._meeting(first, second),
                allowed=_(
                    "one mesh dimension for both, or one of them unsharded: a matrix product sums over them"
                ),
                cure=_(
                    "Give axis {axis} of {tensor!r} the entry {name!r}.",
                    axis=second[1],
                    tensor=second[0],
                    name=self._dim(first),
                ),
            )

    def _check_crossed(self, first: TensorAxis, second: TensorAxis) -> None:
        if self._dim(first) == self._dim(second) != UNSHARDED:
            raise CourseError(
                self._meeting(first, second),
                allowed=_("two mesh dimensions, or one of them unsharded: both are axes of one product"),
                cure=_(
                    "Give axis {axis} of {tensor!r} another mesh dimension.", axis=second[1], tensor=second[0]
                ),
            )

    def _meeting(self, first: TensorAxis, second: TensorAxis) -> str:
        return _(
            "Axis {axis} of {tensor!r} is {name!r}, and axis {other_axis} of {other!r} is {other_name!r}.",
            axis=first[1],
            tensor=first[0],
            name=self._dim(first),
            other_axis=second[1],
            other=second[0],
            other_name=self._dim(second),
        )


def data_parallel(num_devices: int = 8) -> Plan:
    """Returns the plan that splits only the batch: every device holds the whole model."""
    return _plan("data parallel", MeshSpec([("batch", num_devices)]), batch="batch")


def replicated(num_devices: int = 8) -> Plan:
    """Returns the plan that splits nothing: every device does all the work."""
    return _plan("replicated", MeshSpec([("world", num_devices)]))


def model_parallel(batch: int = 4, model: int = 2) -> Plan:
    """Returns the plan that splits the batch, and the hidden units over mesh dimension `model`."""
    mesh = MeshSpec([("batch", batch), ("model", model)])
    return _plan("model parallel", mesh, batch="batch", hidden="model")


def spatial_parallel(batch: int = 2, feature: int = 2, model: int = 2) -> Plan:
    """Returns the plan that splits the batch, the input features and the hidden units."""
    mesh = MeshSpec([("batch", batch), ("feature", feature), ("model", model)])
    return _plan("spatial parallel", mesh, batch="batch", features="feature", hidden="model")


def _plan(
    name: str, mesh: MeshSpec, batch: str = UNSHARDED, features: str = UNSHARDED, hidden: str = UNSHARDED
) -> Plan:
    specs = {
        "inputs": (batch, features),
        "labels": (batch,),
        "hidden_weight": (features, hidden),
        "hidden_bias": (hidden,),
        "logits_weight": (hidden, UNSHARDED),
        "logits_bias": (UNSHARDED,),
    }
    return Plan(name, mesh, {tensor: LayoutSpec(entries, mesh) for tensor, entries in specs.items()})
