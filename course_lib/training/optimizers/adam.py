"""Adam by hand: moving averages of each gradient and of its square, laid out like their variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from course_lib.models.model import Model, Update
from course_lib.runtime import start_tensorflow
from course_lib.training.settings import require_learning_rate

tf = start_tensorflow()


class AdamSlots(tf.Module):  # type: ignore[misc, name-defined]
    """Adam's own variables.

    Attributes:
        means: for each trained variable the moving average of its gradient.
        squares: the same of the gradient's square.
        steps: how many updates were made. A variable: a Python number would be frozen into the function.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(name="adam")
        self.means = _zeros_like_trained(model, "mean")
        self.squares = _zeros_like_trained(model, "square")
        self.steps = model.place.variable(np.array(0, np.int64), (), name="adam_steps", trainable=False)


@dataclass(frozen=True)
class Adam:
    """Moves each variable, of float32, by its average gradient, divided by the root of the average square.

    Attributes:
        learning_rate: about how far a variable moves in a step.
        beta_1: how much of the average gradient stays at each step.
        beta_2: the same for the average square.
        epsilon: keeps the divisor away from zero; added to the root before its bias is corrected, as in
            Keras ("epsilon hat" in the paper).

    Raises:
        CourseError: the learning rate is no finite number above 0.

    Source: Kingma and Ba 2015, https://arxiv.org/abs/1412.6980 (algorithm 1, with the order of computation
        of section 2).
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        require_learning_rate(self.learning_rate)

    def slots(self, model: Model) -> AdamSlots:
        """Returns slots of zeros for the trained variables of `model`."""
        return AdamSlots(model)

    @staticmethod
    def slot_bytes(trained_bytes: int) -> int:
        """Returns the bytes of the averages and the counter, where the trained variables have so many."""
        return 2 * trained_bytes + 8

    def updates(
        self, variables: Mapping[str, Any], gradients: Mapping[str, Any], slots: AdamSlots
    ) -> list[Update]:
        """Returns new values of the variables, of both their averages, and of the counter."""
        steps = slots.steps + 1
        rate = self.corrected_rate(steps)
        updates: list[Update] = [(slots.steps, steps)]
        for name, variable in variables.items():
            mean, square = slots.means[name], slots.squares[name]
            new_mean, new_square = self.averages(gradients[name], mean, square)
            moved = self.moved(variable, rate, new_mean, new_square)
            updates += [(variable, moved), (mean, new_mean), (square, new_square)]
        return updates

    def averages(self, gradient: Any, mean: Any, square: Any) -> tuple[Any, Any]:
        """Returns what the averages of a gradient and of its square become."""
        new_mean = self.beta_1 * mean + (1.0 - self.beta_1) * gradient
        return new_mean, self.beta_2 * square + (1.0 - self.beta_2) * tf.square(gradient)

    def corrected_rate(self, steps: Any) -> Any:
        """Returns the learning rate that undoes the bias of averages that began at zero.

        In float64, since 1 - 0.999 in float32 is wrong in the fifth digit.

        Args:
            steps: the number of the update, from 1; a tensor.
        """
        step = tf.cast(steps, tf.float64)
        root = tf.sqrt(1.0 - self.beta_2**step)
        return tf.cast(self.learning_rate * root / (1.0 - self.beta_1**step), tf.float32)

    def moved(self, variable: Any, rate: Any, mean: Any, square: Any) -> Any:
        """Returns what a variable becomes."""
        return variable - rate * mean / (tf.sqrt(square) + self.epsilon)

    def identity(self) -> dict[str, object]:
        """Returns the name and every setting."""
        return {"optimizer": type(self).__name__, **asdict(self)}


def _zeros_like_trained(model: Model, what: str) -> dict[str, Any]:
    return {
        name: model.place.variable(
            np.zeros(variable.shape, np.float32),
            model.spec.variables[name].axes,
            name=f"{name}_{what}",
            trainable=False,
        )
        for name, variable in model.trained.items()
    }
