"""The base of the models: variables from a declaration, on one device or laid out as a plan says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from course_lib.models.placement import OneDevice, OnMesh, Placement
from course_lib.models.variables import ModelSpec, Values, digest
from course_lib.runtime import device_kind, start_tensorflow
from course_lib.specs.collectives import require_right
from course_lib.specs.plan import BATCH, Plan

tf = start_tensorflow()

Update = tuple[Any, Any]  # a variable, and its new value, a tensor of the same shape


class Model(tf.Module):  # type: ignore[misc, name-defined]
    """A classifier whose variables are declared once, in `spec`, by their named axes.

    Without a plan it lies on one device: the reference that every plan is compared with.

    Attributes:
        spec: the declaration.
        loss_reduction: whether training minimises the "sum" or the "mean" of the losses of a batch.
        plan: the mesh, and which of its dimensions splits which axis; None on one device.
        place: makes variables and sends tensors there.
        sizes: the size of each named axis.
        origin: a digest of the values that the model was made with; it tells two models apart.
    """

    spec: ClassVar[ModelSpec]
    loss_reduction: ClassVar[str] = "mean"

    def __init__(self, values: Mapping[str, npt.ArrayLike], plan: Plan | None = None) -> None:
        """Makes the variables.

        Args:
            values: the first value of each variable, any real numbers; float32 is kept.
            plan: how they are laid out; whole on one device if left out.

        Raises:
            CourseError: a value is missing, shapes do not fit each other, the plan does not fit the model, or
                training would take an all-to-all that TensorFlow runs wrongly.
        """
        super().__init__(name=type(self).__name__.lower())
        self.sizes = MappingProxyType(self.spec.sizes(values))
        arrays = {name: np.asarray(values[name], np.float32) for name in self.spec.variables}
        if plan is not None:
            plan.check(self.spec.tensors)
        if plan is not None and self.spec.layers:
            step = self.spec.step_collectives(plan, {**self.sizes, BATCH: plan.num_shards(BATCH)})
            require_right(step.collectives, device_kind())
        self.plan = plan
        self.place: Placement = OneDevice() if plan is None else OnMesh(plan)
        self.origin = digest(arrays)
        for name, variable in self.spec.variables.items():
            made = self.place.variable(arrays[name], variable.axes, name=name, trainable=variable.trainable)
            setattr(self, name, made)

    def train_logits(self, inputs: Any, weights: Any | None = None) -> tuple[Any, list[Update]]:
        """Returns the logits as training computes them, and the updates of the untrained variables.

        Args:
            inputs: `[batch, ...] global`.
            weights: `[batch] global`, 1 for an example and 0 for a row that only fills up; all 1 if left out.

        Returns:
            `[batch, classes] global`, and pairs (variable, new value): nothing is written here.
        """
        raise NotImplementedError

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the logits, `[batch, classes] global`: each row for itself.

        Args:
            inputs: `[batch, ...] global`.
        """
        raise NotImplementedError

    def __call__(self, inputs: Any) -> Any:
        """Returns the logits as training computes them, `[batch, classes] global`."""
        logits, _updates = self.train_logits(inputs)
        return logits

    @property
    def trained(self) -> dict[str, Any]:
        """The variables that an optimizer changes, by name."""
        return {name: getattr(self, name) for name, spec in self.spec.variables.items() if spec.trainable}

    @property
    def num_classes(self) -> int:
        """The number of classes that it tells apart."""
        return self.sizes[self.spec.outputs[-1]]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.sizes[axis] for axis in self.spec.inputs[1:])

    def values(self) -> Values:
        """Returns the present value of each variable, `[...] global`, on the host."""
        return {name: self.place.fetch(getattr(self, name)) for name in self.spec.variables}
