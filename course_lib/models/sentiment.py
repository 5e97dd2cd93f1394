"""The sentiment MLP: a hidden layer, normalisation over the global batch, and one logit for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.models.normalisation import normalise
from course_lib.models.placement import OneDevice, OnMesh, Placement
from course_lib.models.variables import ONES, RANDOM, ModelSpec, Values, VariableSpec
from course_lib.runtime import device_kind, start_tensorflow
from course_lib.specs.collectives import require_right
from course_lib.specs.plan import BATCH, Plan

tf = start_tensorflow()

DEFAULT_DIMS = (1200, 48, 2)  # features, hidden units, classes
EPSILON = 1e-5  # keeps the square root of a variance of zero away from zero
MOMENTUM = 0.9  # of the moving moments: short trainings have few batches in which to forget 0 and 1

Update = tuple[Any, Any]  # a variable, and its new value, a tensor of the same shape


class MLP(tf.Module):  # type: ignore[misc, name-defined]
    """Two dense layers with batch normalisation between them, on one device or laid out as a plan says.

    Training normalises with the moments of the whole global batch, on however many devices it lies.
    Evaluation normalises with moving moments, so that an example's answer does not depend on the others.
    Without a plan it lies on one device: the reference that every plan is compared with.

    Attributes:
        spec: the variables, declared once by their named axes.
        plan: the mesh, and which of its dimensions splits which axis; None on one device.
        place: makes variables and sends tensors there.
        sizes: the size of each named axis.
    """

    spec = ModelSpec(
        variables={
            "hidden_weight": VariableSpec(("features", "hidden"), RANDOM),
            "hidden_bias": VariableSpec(("hidden",)),
            "logits_weight": VariableSpec(("hidden", "classes"), RANDOM),
            "logits_bias": VariableSpec(("classes",)),
            "moving_mean": VariableSpec(("hidden",), trainable=False),
            "moving_variance": VariableSpec(("hidden",), ONES, trainable=False),
        },
        inputs=("batch", "features"),
        layers=("features", "hidden", "classes"),
        normalised=("hidden",),
    )

    def __init__(self, values: Mapping[str, npt.ArrayLike], plan: Plan | None = None) -> None:
        """Makes the variables.

        Args:
            values: the first value of each variable, any real numbers; float32 is kept.
            plan: how they are laid out; whole on one device if left out.

        Raises:
            CourseError: the plan does not fit the model, or training would take an all-to-all that TensorFlow
                runs wrongly.
        """
        super().__init__(name="mlp")
        self.sizes = MappingProxyType(self.spec.sizes(values))
        arrays = {name: np.asarray(values[name], np.float32) for name in self.spec.variables}
        if plan is not None:
            step = self.spec.step_collectives(plan, {**self.sizes, BATCH: plan.num_shards(BATCH)})
            require_right(step.collectives, device_kind())
        self.plan = plan
        self.place: Placement = OneDevice() if plan is None else OnMesh(plan)
        for name, variable in self.spec.variables.items():
            made = self.place.variable(arrays[name], variable.axes, name=name, trainable=variable.trainable)
            setattr(self, name, made)

    def train_logits(self, inputs: Any) -> tuple[Any, list[Update]]:
        """Returns training's logits, and the updates of the moving moments: nothing is written here.

        Args:
            inputs: `[batch, features] global`.

        Returns:
            `[batch, classes] global`, and pairs (variable, new value).
        """
        normal, mean, variance = normalise(self._hidden(inputs), "hidden", self.place, epsilon=EPSILON)
        updates = [
            (moving, MOMENTUM * moving + (1.0 - MOMENTUM) * batch)
            for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance))
        ]
        return self._logits(normal), updates

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the logits with the moving moments, `[batch, classes] global`: each row for itself."""
        moments = self.moving_mean, self.moving_variance
        return self._logits(tf.nn.batch_normalization(self._hidden(inputs), *moments, None, None, EPSILON))

    @property
    def trained(self) -> dict[str, Any]:
        """The variables that gradient descent changes, by name."""
        return {name: getattr(self, name) for name, spec in self.spec.variables.items() if spec.trainable}

    def values(self) -> Values:
        """Returns the present value of each variable, `[...] global`, on the host."""
        return {name: self.place.fetch(getattr(self, name)) for name in self.spec.variables}

    def _hidden(self, inputs: Any) -> Any:
        return tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)

    def _logits(self, normal: Any) -> Any:
        return tf.matmul(normal, self.logits_weight) + self.logits_bias


def initial_values(seed: int = 0, scheme: str = "he", dims: Sequence[int] = DEFAULT_DIMS) -> Values:
    """Returns the first value of each variable, made on the host: the same whatever the layout.

    Args:
        seed: of the random numbers.
        scheme: "he" draws weights from N(0, 2 / inputs of the unit), "normal" from N(0, 1).
        dims: the numbers of features, hidden units and classes.

    Returns:
        For each variable its value, `[...] global`, float32.
    """
    return MLP.spec.initial_values(dict(zip(MLP.spec.axes, dims, strict=True)), seed, scheme)
