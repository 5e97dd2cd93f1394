"""Judging a function that a reader wrote: on many inputs, beside a reference, with hints."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from course_lib.exercises import limit
from course_lib.exercises.faults import fault, stumbled_over_a_stub
from course_lib.exercises.values import (
    NotAnswered,
    answered,
    first_difference,
    num_parts,
    outlined,
    plain,
    same,
)
from course_lib.i18n import _

TOLERANCE = 1e-4  # of the largest number of a result: for float32, and for a guard such as + 1e-8

Function = Callable[..., Any]
Draw = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """One input of a judged function.

    Attributes:
        inputs: its arguments. What the reader's function does to arrays in it does not last.
        hint: what this input is about; shown where only such inputs fail.
        told: the arguments in words; shown in place of their values.
    """

    inputs: tuple[Any, ...]
    hint: str = ""
    told: str = ""


@dataclass(frozen=True)
class _Outcome:
    """What a function made of one input: a plain value, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None


def drawn(draw: Draw, count: int = 50) -> list[Case]:
    """Returns `count` random inputs, the same ones everywhere.

    Numbers with few digits are easier to check by hand.
    """
    random = np.random.default_rng(0)
    return [Case(draw(random)) for _number in range(count)]


def judge(
    answer: Function,
    reference: Function,
    cases: Iterable[Case],
    *,
    misconceptions: Mapping[Function, str] | None = None,
    run: Function | None = None,
    tolerance: float = TOLERANCE,
    advice: str = "",
) -> str | None:
    """Returns None where a reader's function gives what the reference gives, and else a hint.

    The hint is that of the first misconception with which the answer agrees on every input that has no hint
    of its own. Without one it is the smallest input that fails, with what the answer made of it: a value, or
    an error with its line.

    Args:
        answer: the reader's function.
        reference: a right one.
        cases: the inputs.
        misconceptions: functions with plausible mistakes, each with its hint.
        run: calls the reader's function another way: `run(answer, *inputs)` returns what is compared with
            `reference(*inputs)`. For distributed code it makes the DTensors and reads them back.
        tolerance: by how much a number may be off, as a part of the largest one in the result.
        advice: what to do where a value is wrong and neither a misconception nor a case has a hint.

    Raises:
        NotAnswered: the function returns `...`, or stumbles over one that it still holds.
    """
    inputs = list(cases)
    called = _answering(answer)
    calling = called if run is None else partial(run, called)
    outcomes = [_call(calling, case.inputs) for case in inputs]
    expected = [_Outcome(plain(reference(*_fresh(case.inputs)))) for case in inputs]
    alike = [_alike(*pair, tolerance) for pair in zip(outcomes, expected, strict=True)]
    if all(alike):
        return None
    wrong = [at for at, agrees in enumerate(alike) if not agrees]
    at = min(wrong, key=lambda at: (bool(inputs[at].hint), num_parts(plain(inputs[at].inputs))))
    ordinary = [number for number, case in enumerate(inputs) if not case.hint]
    for misconception, hint in (misconceptions or {}).items() if at in ordinary else ():
        theirs = [_call(misconception, inputs[number].inputs) for number in ordinary]
        ours = [outcomes[number] for number in ordinary]
        if all(_alike(*pair, tolerance) for pair in zip(ours, theirs, strict=True)):
            return hint
    return _failure(reference, inputs[at], outcomes[at], expected[at].value, tolerance, advice=advice)


def _answering(answer: Function) -> Function:
    """Returns the function, made to say that it is not answered where it returns `...`."""

    def answering(*inputs: Any, **options: Any) -> Any:  # a `tf.function` passes defaults by their names
        return answered(answer(*inputs, **options))

    answering.__wrapped__ = answer  # type: ignore[attr-defined]  # for who looks at the reader's own code
    return answering


def _call(function: Function, inputs: tuple[Any, ...]) -> _Outcome:
    try:
        # What it prints and warns of stays out of the notebook: it is called dozens of times.
        with (
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
            np.errstate(all="ignore"),
            limit.time_limit(),
        ):
            value = plain(answered(function(*_fresh(inputs))))
    except (NotAnswered, limit.TooLong):
        raise
    except (Exception, SystemExit) as error:
        if stumbled_over_a_stub(error):
            raise NotAnswered from error
        return _Outcome(error=error)
    return _Outcome(value)


def _fresh(value: Any) -> Any:
    """Returns a copy of inputs, so that a function that changes them in place changes none of ours."""
    if isinstance(value, (tuple, list)):
        return type(value)(_fresh(part) for part in value)
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value


def _alike(ours: _Outcome, theirs: _Outcome, tolerance: float) -> bool:
    if ours.error is not None or theirs.error is not None:
        return ours.error is not None and theirs.error is not None
    return same(ours.value, theirs.value, tolerance)


def _failure(
    reference: Function, case: Case, outcome: _Outcome, expected: object, tolerance: float, *, advice: str
) -> str:
    given = case.told or _named(reference, case.inputs)
    if outcome.error is not None:
        lines = [_("Your function fails for {given}.", given=given), fault(outcome.error), case.hint]
        return "\n".join(line for line in lines if line)
    place, part = first_difference(outcome.value, expected, tolerance)
    values = {"given": given, "place": place, "value": outlined(part)}
    if outcome.value is None:
        found = _(
            "For {given} your function gives `None`. Is a `return` missing, or is `None` wrong here?",
            given=given,
        )
    elif place:
        found = _("For {given} your function makes `{place}` equal to `{value}`.", **values)
    else:
        found = _("For {given} your function gives `{value}`.", **values)
    work_it_out = _("Work this one out by hand, then look for the difference.")
    return f"{found}\n{case.hint or advice or work_it_out}"


def _named(function: Function, inputs: Sequence[Any]) -> str:
    """Returns the arguments of a call with the names that `function` gives them."""
    texts = [outlined(plain(each)) for each in inputs]
    names = inspect.signature(function).parameters
    return _(", ").join(f"`{name} = {text}`" for name, text in zip(names, texts, strict=False))
