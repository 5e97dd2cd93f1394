"""The MLP of TensorFlow's Core tutorials for handwritten digits: 784-700-500-10, with ReLU."""

from __future__ import annotations

from typing import Any

from course_lib.models.model import Model, Update
from course_lib.models.variables import RANDOM, ModelSpec, Values, VariableSpec
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

SIZES = {"features": 784, "hidden": 700, "hidden_2": 500, "classes": 10}


class MLP(Model):
    """Three dense layers; training minimises the mean cross entropy.

    Source: https://www.tensorflow.org/guide/core/mlp_core
    """

    spec = ModelSpec(
        variables={
            "hidden_weight": VariableSpec(("features", "hidden"), RANDOM),
            "hidden_bias": VariableSpec(("hidden",)),
            "hidden_2_weight": VariableSpec(("hidden", "hidden_2"), RANDOM),
            "hidden_2_bias": VariableSpec(("hidden_2",)),
            "logits_weight": VariableSpec(("hidden_2", "classes"), RANDOM),
            "logits_bias": VariableSpec(("classes",)),
        },
        inputs=("batch", "features"),
        outputs=("batch", "classes"),
        layers=("features", "hidden", "hidden_2", "classes"),
    )

    def train_logits(self, inputs: Any, weights: Any | None = None) -> tuple[Any, list[Update]]:
        """Returns the logits, `[batch, classes] global`; no variable has another update."""
        del weights  # rows do not see each other
        return self.evaluate_logits(inputs), []

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the logits, `[batch, classes] global`."""
        hidden = tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)
        hidden_2 = tf.nn.relu(tf.matmul(hidden, self.hidden_2_weight) + self.hidden_2_bias)
        return tf.matmul(hidden_2, self.logits_weight) + self.logits_bias


def initial_values(seed: int = 0) -> Values:
    """Returns the first value of each variable: Xavier's uniform weights, and biases of zero."""
    return MLP.spec.initial_values(SIZES, seed, "xavier")
