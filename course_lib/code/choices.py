"""The code of a choice, in the framework that the reader asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_lib.code import in_jax, in_pytorch, in_tensorflow
from course_lib.code.writing import program
from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding

Choice = Sharding | Plan


@dataclass(frozen=True)
class _Framework:
    of_sharding: Callable[[Sharding], list[str]]
    of_plan: Callable[[Plan], list[str]]


_FRAMEWORKS = {
    "TensorFlow": _Framework(in_tensorflow.of_sharding, in_tensorflow.of_plan),
    "JAX": _Framework(in_jax.of_sharding, in_jax.of_plan),
    "PyTorch": _Framework(in_pytorch.of_sharding, in_pytorch.of_plan),
}
FRAMEWORKS = tuple(_FRAMEWORKS)


def code_of(choice: Choice, framework: str) -> str:
    """Returns a program that makes what was chosen, without this library.

    For a sharding it makes `tensor`, and for a plan `distributed(value, *axes)`, which makes a tensor with
    named axes. Each device gets what the sharding says.

    Args:
        choice: `layout.of(global_shape)`, or a plan.
        framework: one of `FRAMEWORKS`.

    Raises:
        CourseError: the framework is none of these, or the choice is of another kind.
    """
    return "".join(sections_of(choice, framework))


def sections_of(choice: Choice, framework: str) -> tuple[str, ...]:
    """Returns the parts of `code_of`, each with the empty lines after it: many choices have equal ones.

    Raises:
        CourseError: as `code_of`.
    """
    one_of(
        framework,
        FRAMEWORKS,
        _("There is no code in {framework!r}.", framework=framework),
        cure=_("Name one of these frameworks."),
    )
    if isinstance(choice, Sharding):
        return program(_FRAMEWORKS[framework].of_sharding(choice))
    if isinstance(choice, Plan):
        return program(_FRAMEWORKS[framework].of_plan(choice))
    raise CourseError(
        _("There is no code for {choice!r}.", choice=choice),
        allowed=_("a sharding or a plan"),
        cure=_("Give a layout its shape: layout.of(global_shape)."),
    )
