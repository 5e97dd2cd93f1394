"""What an optimizer is: new values from gradients, and the slots that it keeps beside the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from course_lib.models.model import Model, Update


class Optimizer(Protocol):
    """Turns gradients into updates; who trains writes them, all at once and last."""

    def slots(self, model: Model) -> Any | None:
        """Returns a `tf.Module` with the optimizer's own variables for `model`; None if it needs none."""

    def updates(self, variables: Mapping[str, Any], gradients: Mapping[str, Any], slots: Any) -> list[Update]:
        """Returns (variable, new value) for each variable and slot; writes nothing.

        Args:
            variables: the trained variables by name.
            gradients: the gradient of each, laid out like it.
            slots: what `slots` made.
        """

    def identity(self) -> Mapping[str, object]:
        """Returns what may not change when a training is resumed, as JSON holds it."""
