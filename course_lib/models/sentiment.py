"""The sentiment MLP: a hidden layer, normalisation over the global batch, and one logit for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.models.model import Model, Update
from course_lib.models.normalisation import normalise
from course_lib.models.variables import ONES, RANDOM, ModelSpec, Values, VariableSpec
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

DEFAULT_DIMS = (1200, 48, 2)  # features, hidden units, classes
EPSILON = 1e-5  # keeps the square root of a variance of zero away from zero
MOMENTUM = 0.9  # of the moving moments: short trainings have few batches in which to forget 0 and 1


class MLP(Model):
    """Two dense layers with batch normalisation between them.

    Training normalises with the moments of the whole global batch, on however many devices it lies.
    Evaluation normalises with moving moments, so that an example's answer does not depend on the others.
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
        outputs=("batch", "classes"),
        layers=("features", "hidden", "classes"),
        normalised=("hidden",),
    )
    loss_reduction = "sum"  # as in TensorFlow's tutorial

    def train_logits(self, inputs: Any, weights: Any | None = None) -> tuple[Any, list[Update]]:
        """Returns training's logits `[batch, classes] global`, and the updates of the moving moments."""
        hidden = self._hidden(inputs)
        normal, mean, variance = normalise(hidden, "hidden", self.place, epsilon=EPSILON, weights=weights)
        updates = [
            (moving, MOMENTUM * moving + (1.0 - MOMENTUM) * batch)
            for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance))
        ]
        return self._logits(normal), updates

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the logits with the moving moments, `[batch, classes] global`: each row for itself."""
        moments = self.moving_mean, self.moving_variance
        return self._logits(tf.nn.batch_normalization(self._hidden(inputs), *moments, None, None, EPSILON))

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

    Raises:
        CourseError: an unknown scheme.
    """
    return MLP.spec.initial_values(dict(zip(MLP.spec.axes, dims, strict=True)), seed, scheme)
