"""What an optimizer is: new values from gradients, and the slots that it keeps beside the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model, Update


@runtime_checkable
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


def require_gradients(variables: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
    """Checks that every trained variable has a gradient.

    Raises:
        CourseError: there is none, or it is None: the loss does not depend on the variable.
    """
    for name in variables:
        if gradients.get(name) is None:
            raise CourseError(
                _("The variable {name!r} has no gradient.", name=name),
                allowed=_("one gradient for each trained variable"),
                cure=_("Use the variable in the loss, or do not hand it to the optimizer."),
            )


def require_optimizer(given: object) -> Optimizer:
    """Returns an optimizer.

    Raises:
        CourseError: it is none, or the class of one.
    """
    if isinstance(given, type) or not isinstance(given, Optimizer):
        raise CourseError(
            _("{given!r} is no optimizer.", given=given),
            allowed="SGD(...), Adam(...)",
            cure=_("Write for example optimizer=Adam(learning_rate=1e-3)."),
        )
    return given
