"""Judging functions: misconceptions are named, the smallest failing input is shown, errors too."""

import functools
import math
import statistics
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.errors import CourseError
from course_lib.exercises.answers import NotAnswered
from course_lib.exercises.comparing import close
from course_lib.exercises.faults import fault
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.shown import input_text, value_text


def mean(values, scale):
    return float(np.mean(values)) * scale


def median(values, scale):
    return float(np.median(values)) * scale


def draw(random):
    return random.integers(0, 9, int(random.choice([3, 5]))).astype(np.float32), int(random.integers(1, 4))


EMPTY = Case((np.zeros(0, np.float32), 1), "No values have the mean 0.")
CASES = drawn(draw, 40)


def safe_mean(values, scale):
    return mean(values, scale) if len(values) else 0.0


def judged(answer, reference=mean, cases=CASES, **options):
    return judge(answer, reference, cases, misconceptions={median: "That is the median."}, **options)


def test_the_inputs_are_the_same_everywhere():
    assert drawn(draw, 2)[1].inputs[0].tolist() == [1, 7, 5]
    assert not np.array_equal(drawn(draw, 1, seed=1)[0].inputs[0], CASES[0].inputs[0])


@pytest.mark.parametrize(
    "right",
    [
        mean,
        lambda values, scale: scale * sum(values) / len(values),
        lambda values, scale: statistics.fmean(values.tolist()) * scale,
        lambda values, scale: np.sum(values) / (len(values) + 1e-8) * scale,
        lambda values, scale: np.float32(values.mean()) * np.float32(scale),
        lambda values, scale: np.array(values.mean() * scale),
    ],
)
def test_right_functions_pass(right):
    assert judged(right) is None


def test_a_misconception_is_named_also_where_an_input_with_a_hint_differs():
    assert judged(median) == "That is the median."
    assert judged(lambda values, scale: np.median(values) * scale) == "That is the median."

    def guarded(values, scale):
        return median(values, scale) if len(values) else 7

    assert judged(guarded, safe_mean, [*CASES, EMPTY]) == "That is the median."


def test_a_misconception_that_fails_on_one_input_is_not_named():
    def almost(values, scale):
        return median(values, scale) + (values.tolist() == CASES[7].inputs[0].tolist())

    assert "median" not in judged(almost)


def test_the_smallest_failing_input_is_shown_without_the_answer():
    hint = judged(lambda values, scale: float(values.sum()))
    assert hint == (
        "For `values = [0, 0, 1]`, `scale = 1` your function gives `1`.\n"
        "Work this one out by hand, then look for the difference."
    )


def test_an_input_with_a_hint_is_shown_only_where_all_others_are_right():
    cases = [EMPTY, *CASES]
    assert judged(safe_mean, safe_mean, cases) is None
    assert judged(lambda values, scale: 1.0, safe_mean, cases).endswith("look for the difference.")
    assert judged(mean, safe_mean, cases) == (
        "For `values = []`, `scale = 1` your function gives `nan`.\nNo values have the mean 0."
    )


def test_an_error_is_the_readers_own_with_its_line_and_the_input():
    def broken(values, scale):
        total = values.sum()
        return total / (scale - scale // 1)

    def python_division(values, scale):
        return sum(values.tolist()) / len(values) * scale

    assert judged(python_division, safe_mean, [*CASES, EMPTY]) == (
        "Your function fails for `values = []`, `scale = 1`.\n"
        "It raised `ZeroDivisionError: division by zero`,"
        " in the line `return sum(values.tolist()) / len(values) * scale`.\nNo values have the mean 0."
    )
    assert "gives `inf`" in judged(broken)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda values: 1.0, "takes 1 positional argument but 2 were given"),
        (
            lambda values, scale: values.nothing,
            "'numpy.ndarray' object has no attribute 'nothing'`",
        ),
        (lambda values, scale: None, "gives nothing. Does it end with `return`?"),
        (lambda values, scale: values, "A single number is asked for."),
        (lambda values, scale: [mean(values, scale)], "A single number is asked for."),
        (lambda values, scale: str(mean(values, scale)), "gives `'"),
        (len, "len() takes exactly one argument (2 given)"),
    ],
)
def test_what_a_function_does_is_said(answer, said):
    assert said in judged(answer)


def test_a_library_that_raises_is_not_the_readers_line():
    def average(values, scale):
        return np.average(values, weights=np.zeros(len(values)))

    hint = judged(average)
    assert "`ZeroDivisionError: Weights sum to zero, can't be normalized`" in hint
    assert "in the line `return np.average(values, weights=np.zeros(len(values)))`" in hint


@pytest.mark.parametrize(
    "stub",
    [
        lambda values, scale: ...,
        lambda values, scale: ... * scale,
        lambda values, scale: (scale, ...),
        lambda values, scale: np.zeros(...),
        lambda values, scale: float(...),
        lambda values, scale: math.sqrt(...),
        lambda values, scale: mean(values, scale) if scale == 1 else ...,
    ],
)
def test_a_stub_is_not_answered(stub):
    with pytest.raises(NotAnswered):
        judged(stub)


def test_an_input_may_be_told_in_words():
    assert judged(lambda values, scale: 0, cases=[Case((np.ones(2), 2), told="two ones")]) == (
        "For two ones your function gives `0`.\nWork this one out by hand, then look for the difference."
    )


def test_what_a_function_does_to_its_inputs_does_not_last():
    def changing(values, scale):
        values *= scale
        total = values.sum()
        values[:] = np.nan
        return total / len(values)

    assert judged(changing) is None
    assert all(np.isfinite(case.inputs[0]).all() for case in CASES)


def test_a_function_is_quiet_while_it_is_judged(capsys):
    def noisy(values, scale):
        print("noise")
        warnings.warn("noise", stacklevel=1)
        np.float64(0) / np.float64(0)
        return mean(values, scale)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judged(noisy) is None
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_is_no_answer():
    def interrupted(values, scale):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(interrupted)


def test_run_calls_the_function_another_way():
    def run(answer, values, scale):
        return answer(list(values))[0] * scale

    assert judged(lambda values: (sum(values) / len(values), "ignored"), run=run) is None


def test_whole_numbers_must_be_exact_and_fractions_nearly():
    big = [Case((number,)) for number in range(100_000, 100_005)]
    assert judge(lambda n: n + 1, lambda n: n, big) is not None
    assert judge(float, lambda n: n, big) is None
    assert judge(lambda n: n * 1.00001, float, big) is None
    assert judge(lambda n: n * 1.001, float, big) is not None


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        (1.0, 1, True),
        (1.00001, 1, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (True, 1, False),
        ((1, 2), (1, 2, 3), False),
        (((1,), (2, 4)), ((1,), (2, 3)), False),
        (3, (3,), False),
        ((3,), 3, False),
        ("3", 3, False),
        ((1000.0, 0.01), (1000.0, 0.0), True),
        ((1.0, 0.01), (1.0, 0.0), False),
    ],
)
def test_close(value, expected, equal):
    assert close(value, expected) is equal


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.data())
def test_one_other_number_does(values, data):
    at = data.draw(st.integers(0, len(values) - 1))
    other = [*values]
    other[at] += 1e-3 * max(map(abs, values)) + 1e-3
    assert not close(tuple(other), tuple(values))


def test_texts_of_inputs_and_values():
    assert input_text(mean, (np.array([0.1, 2], np.float32), 3)) == "`values = [0.1, 2]`, `scale = 3`"
    assert input_text(max, (1, [2, 3])) == "`1`, `[2, 3]`"
    assert input_text(functools.partial(mean, scale=2), (1,)) == "`1`"
    assert value_text(((0.5, 1), (2, 3))) == "[[0.5, 1], [2, 3]]"
    assert value_text(tuple(range(30))) == "30 values"
    assert value_text(((0.0,) * 30,) * 2) == "an array of the shape (2, 30)"
    assert value_text(((0.0,) * 40, (1,))) == "2 values"
    assert len(value_text("x" * 1000)) < 110


def test_an_error_of_the_course_keeps_its_lines():
    error = CourseError("It is wrong.", allowed="what is right", cure="Do it.")
    assert fault(error) == "It is wrong.\n  Allowed: what is right\n  What to do: Do it."
