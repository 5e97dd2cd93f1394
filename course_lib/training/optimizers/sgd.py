"""Plain gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course_lib.models.model import Model, Update
from course_lib.training.settings import require_learning_rate


@dataclass(frozen=True)
class SGD:
    """Moves each variable against its gradient.

    Attributes:
        learning_rate: how far.

    Raises:
        CourseError: the learning rate is no finite number above 0.
    """

    learning_rate: float = 1e-2

    def __post_init__(self) -> None:
        require_learning_rate(self.learning_rate)

    def slots(self, model: Model) -> None:
        """Returns None: it remembers nothing."""

    @staticmethod
    def slot_bytes(trained_bytes: int) -> int:
        """Returns 0: it has no variables of its own."""
        del trained_bytes
        return 0

    def updates(
        self, variables: Mapping[str, Any], gradients: Mapping[str, Any], slots: None
    ) -> list[Update]:
        """Returns (variable, variable - learning rate * gradient) for each."""
        del slots
        return [
            (variable, variable - self.learning_rate * gradients[name])
            for name, variable in variables.items()
        ]

    def identity(self) -> dict[str, object]:
        """Returns the name and the learning rate."""
        return {"optimizer": "SGD", "learning_rate": self.learning_rate}
