"""Judging a function that returns a component for each device: also the form of what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_lib.exercises.comparing import TOLERANCE
from course_lib.exercises.judging import Case, Function, Run, judge
from course_lib.i18n import _, ngettext


def judge_components(
    answer: Function,
    reference: Function,
    cases: Sequence[Case],
    *,
    num_devices: Callable[..., int],
    misconceptions: Mapping[Function, str],
    run: Run,
    advice: str,
    tolerance: float = TOLERANCE,
) -> str | None:
    """Returns what `judge` returns; where that has only its general advice, what is wrong with the form.

    Args:
        answer: the reader's function.
        reference: a right one.
        cases: the inputs.
        num_devices: how many components such inputs ask for.
        misconceptions: functions with plausible mistakes, each with its hint.
        run: calls the reader's function on inputs.
        advice: what to do where a component is wrong and no misconception explains it.
        tolerance: by how much a number may be off, as a part of the largest one in the result.
    """
    wrong_forms: list[str] = []

    def noting(function: Function, *inputs: Any) -> Any:
        made = run(function, *inputs)
        if hint := _hint_on_form(made, num_devices(*inputs)):
            wrong_forms.append(hint)
        return made

    hint = judge(
        answer,
        reference,
        cases,
        misconceptions=misconceptions,
        run=noting,
        advice=advice,
        tolerance=tolerance,
    )
    return wrong_forms[0] if wrong_forms and hint and hint.endswith(advice) else hint


def _hint_on_form(made: Any, num_devices: int) -> str | None:
    """Returns how to give back components where this is no list with one for each device."""
    if made is None:  # `judge` has a hint for that
        return None
    if not isinstance(made, Sequence) and getattr(made, "ndim", 0) == 0:
        return _(
            "Your function returns a value of the type `{kind}`. Return a list: its element `d` is what"
            " device `d` holds.",
            kind=type(made).__name__,
        )
    if len(made) != num_devices:
        return ngettext(
            "Your list has {count} component. It needs one for each device: {num_devices}.",
            "Your list has {count} components. It needs one for each device: {num_devices}.",
            len(made),
            num_devices=num_devices,
        )
    return None
