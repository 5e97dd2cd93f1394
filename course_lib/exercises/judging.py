"""Judging a function that a reader wrote: on many inputs, beside a reference, with hints."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.answers import NotAnswered, answered, plain
from course_lib.exercises.comparing import TOLERANCE, close, first_difference
from course_lib.exercises.faults import fault, stumbled_over_a_stub
from course_lib.exercises.shown import input_text, is_long, num_parts, value_text
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Function = Callable[..., Any]
Draw = Callable[[np.random.Generator], tuple[Any, ...]]
Run = Callable[..., Any]


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


def drawn(draw: Draw, count: int = 50, seed: int = 0) -> list[Case]:
    """Returns `count` random inputs, the same ones everywhere.

    Args:
        draw: makes the arguments of one call; numbers with few digits are easier to check by hand.
        count: how many.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    return [Case(draw(random)) for _number in range(count)]


def judge(
    answer: Function,
    reference: Function,
    cases: Iterable[Case],
    *,
    misconceptions: Mapping[Function, str] | None = None,
    run: Run | None = None,
    tolerance: float = TOLERANCE,
    advice: str = "",
) -> str | None:
    """Returns None where a reader's function gives what the reference gives, and else a hint.

    The hint is that of the first misconception with which the answer agrees on every input that has no hint
    of its own. Without one it is the smallest input that fails, with what the answer made of it: a value, or
    an error with its line.

    Args:
        answer: the reader's function. It gets arrays; where it fails on those and TensorFlow is loaded, it
            gets tensors.
        reference: a right one, on arrays.
        cases: the inputs.
        misconceptions: functions with plausible mistakes, on arrays, each with its hint.
        run: calls the reader's function another way: `run(answer, *inputs)` returns what is compared with
            `reference(*inputs)`. For distributed code it makes the DTensors and reads them back.
        tolerance: by how much a number may be off, as a part of the largest one in the result.
        advice: what to do where a value is wrong and neither a misconception nor a case has a hint.

    Raises:
        NotAnswered: the function returns `...`, or stumbles over one that it still holds.
    """
    inputs = list(cases)
    expected = [plain(reference(*_fresh(case.inputs))) for case in inputs]
    outcomes = _outcomes(answer, inputs, run)

    def agrees(outcome: _Outcome, value: object) -> bool:
        return outcome.error is None and close(outcome.value, value, tolerance)

    wrong = [at for at, outcome in enumerate(outcomes) if not agrees(outcome, expected[at])]
    if not wrong:
        return None
    at = min(wrong, key=lambda at: (bool(inputs[at].hint), _size(inputs[at].inputs)))
    ordinary = {} if inputs[at].hint else (misconceptions or {})
    for misconception, hint in ordinary.items():
        if _agrees_with(misconception, inputs, outcomes, tolerance):
            return hint
    return _failure(reference, inputs[at], outcomes[at], expected[at], tolerance, advice=advice)


def with_lists_or_arrays(function: Function, *inputs: Any) -> Any:
    """Returns what a function gives, an array of one number as that number.

    A function that cannot do with a list is called again with an array.
    """
    arrays = [np.array(each) if isinstance(each, list) else each for each in inputs]
    try:
        value = function(*inputs)
    except Exception as error:
        try:
            value = function(*arrays)
        except Exception:
            raise error from None
    return value.reshape(()) if isinstance(value, np.ndarray) and value.size == 1 else value


def _outcomes(answer: Function, cases: Sequence[Case], run: Run | None) -> list[_Outcome]:
    if run is not None:
        return _called_on(lambda *inputs: run(_answering(answer), *inputs), cases)
    outcomes = _called_on(answer, cases)
    if "tensorflow" not in sys.modules or not _failures(outcomes):
        return outcomes
    try:
        tf = start_tensorflow()
    except CourseError:  # it runs with other devices than the course's
        return outcomes
    again = _called_on(lambda *inputs: answer(*_as_tensors(inputs, tf)), cases)
    return again if _failures(again) < _failures(outcomes) else outcomes


def _as_tensors(value: Any, tf: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_as_tensors(part, tf) for part in value)
    return tf.constant(value) if isinstance(value, np.ndarray) else value


def _answering(answer: Function) -> Function:
    """Returns the function, made to say that it is not answered where it returns `...`."""
    return lambda *inputs: answered(answer(*inputs))


def _failures(outcomes: Sequence[_Outcome]) -> int:
    return sum(outcome.error is not None for outcome in outcomes)


def _called_on(function: Function, cases: Sequence[Case]) -> list[_Outcome]:
    return [_call(function, case.inputs) for case in cases]


def _call(function: Function, inputs: tuple[Any, ...]) -> _Outcome:
    try:
        with _quiet(), limit.time_limit():
            value = plain(answered(function(*_fresh(inputs))))
    except (NotAnswered, limit.TooLong):
        raise
    except (Exception, SystemExit) as error:
        if stumbled_over_a_stub(error):
            raise NotAnswered from error
        return _Outcome(error=error)
    return _Outcome(value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what a function prints and warns of out of the notebook: it is called dozens of times."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _fresh(value: Any) -> Any:
    """Returns a copy of inputs, so that a function that changes them in place changes none of ours."""
    if isinstance(value, (tuple, list)):
        return type(value)(_fresh(part) for part in value)
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value


def _agrees_with(
    misconception: Function, cases: Sequence[Case], outcomes: Sequence[_Outcome], tolerance: float
) -> bool:
    """Returns whether a misconception explains the outcomes of all inputs without a hint of their own."""
    return all(
        _alike(outcome, _call(misconception, case.inputs), tolerance)
        for case, outcome in zip(cases, outcomes, strict=True)
        if not case.hint
    )


def _alike(ours: _Outcome, theirs: _Outcome, tolerance: float) -> bool:
    if ours.error is not None or theirs.error is not None:
        return ours.error is not None and theirs.error is not None
    return close(ours.value, theirs.value, tolerance)


def _size(inputs: tuple[Any, ...]) -> int:
    return num_parts(plain(inputs))


def _failure(
    reference: Function, case: Case, outcome: _Outcome, expected: object, tolerance: float, *, advice: str
) -> str:
    given = case.told or input_text(reference, case.inputs)
    if outcome.error is not None:
        lines = [_("Your function fails for {given}.", given=given), fault(outcome.error), case.hint]
        return "\n".join(line for line in lines if line)
    if outcome.value is None:
        return _("For {given} your function gives nothing. Does it end with `return`?", given=given)
    place, part, right = first_difference(outcome.value, expected, tolerance)
    values = {"given": given, "place": place, "value": value_text(part)}
    if place:
        found = _("For {given} your function makes `{place}` equal to `{value}`.", **values)
    else:
        found = _("For {given} your function gives `{value}`.", **values)
    return f"{found}\n{case.hint or advice or _advice(case, part, right)}"


def _advice(case: Case, value: object, expected: object) -> str:
    if isinstance(value, tuple) and not isinstance(expected, tuple):
        return _("A single number is asked for.")
    if any(is_long(plain(each)) for each in case.inputs):
        return _("Try it on a smaller input, and compare with what you expect.")
    return _("Work this one out by hand, then look for the difference.")
