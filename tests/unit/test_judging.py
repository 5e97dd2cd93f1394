"""Judging functions: misconceptions are named, the smallest failing input is shown, errors too."""

import warnings

import numpy as np
import pytest

from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import NotAnswered, outlined, same


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


def test_a_misconception_is_named_where_it_explains_every_ordinary_input():
    def guarded(values, scale):
        return median(values, scale) if len(values) else 7

    def almost(values, scale):
        return median(values, scale) + (values.tolist() == CASES[7].inputs[0].tolist())

    assert judged(median) == "That is the median."
    assert judged(guarded, safe_mean, [*CASES, EMPTY]) == "That is the median."
    assert "median" not in judged(almost)


def test_the_smallest_failing_input_is_shown_without_the_answer():
    hint = judged(lambda values, scale: float(values.sum()))
    assert hint == (
        "For `values = (0.0, 0.0, 1.0)`, `scale = 1` your function gives `1.0`.\n"
        "Work this one out by hand, then look for the difference."
    )


def test_an_input_with_a_hint_is_shown_only_where_all_others_are_right():
    cases = [EMPTY, *CASES]
    assert judged(safe_mean, safe_mean, cases) is None
    assert judged(lambda values, scale: 1.0, safe_mean, cases).endswith("look for the difference.")
    assert judged(mean, safe_mean, cases) == (
        "For `values = ()`, `scale = 1` your function gives `nan`.\nNo values have the mean 0."
    )


def test_an_error_is_the_readers_own_with_its_line_and_the_input():
    def python_division(values, scale):
        return sum(values.tolist()) / len(values) * scale

    assert judged(python_division, safe_mean, [*CASES, EMPTY]) == (
        "Your function fails for `values = ()`, `scale = 1`.\n"
        "It raised `ZeroDivisionError: division by zero`,"
        " in the line `return sum(values.tolist()) / len(values) * scale`.\nNo values have the mean 0."
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda values: 1.0, "takes 1 positional argument but 2 were given"),
        (lambda values, scale: None, "gives `None`. Is a `return` missing"),
        (lambda values, scale: str(mean(values, scale)), "gives `'"),
        (
            lambda values, scale: np.average(values, weights=0 * values),  # NumPy's line is not the reader's
            "Weights sum to zero, can't be normalized`, in the line `lambda values, scale: np.average(",
        ),
    ],
)
def test_what_a_function_does_is_said(answer, said):
    assert said in judged(answer)


@pytest.mark.parametrize(
    "stub",
    [
        lambda values, scale: ...,
        lambda values, scale: ... * scale,
        lambda values, scale: (scale, ...),
        lambda values, scale: np.zeros(...),
        lambda values, scale: float(...),
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
        total = values.sum() * scale
        values[:] = np.nan
        return total / len(values)

    assert judged(changing) is None
    assert all(np.isfinite(case.inputs[0]).all() for case in CASES)


def test_a_function_is_quiet_while_it_is_judged(capsys):
    def noisy(values, scale):
        print("noise")
        warnings.warn("noise", stacklevel=1)
        return mean(values, scale)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judged(noisy) is None
    assert capsys.readouterr() == ("", "")


def test_a_function_without_end_is_ended_and_told(monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.2)

    def endless(value):
        step = 0
        while step < value:
            try:
                pass
            except Exception:
                step += 1

    with pytest.raises(CourseError, match="still ran after"):
        judge(endless, abs, [Case((3,))])


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        (1.0, 1, True),
        (1.00001, 1, False),
        (1.00001, 1.0, True),  # as a float32, or with a guard such as + 1e-8
        (1.001, 1.0, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        ((True, 2), (1, 2), False),
        (2**53 + 1, 2**53, False),
        ((1, 2), (1, 2, 3), False),
        (((1,), (2, 4)), ((1,), (2, 3)), False),
        ((3,), 3, False),
        ("3", 3, False),
        ((1000.0, 0.01), (1000.0, 0.0), True),  # of the largest number
        ((1.0, 0.01), (1.0, 0.0), False),
        ({"a": (1, 2.0)}, {"a": (1, 2.0)}, True),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_values_agree_up_to_a_part_of_the_largest_number(value, expected, equal):
    assert same(value, expected, 1e-4) is equal


def test_a_long_value_is_told_by_its_shape_and_no_address_is():
    assert outlined((0.5, (1, 1 / 3))) == "(0.5, (1, 0.333333))"
    assert outlined(((0.0,) * 30,) * 2) == "an array of the shape (2, 30)"
    assert outlined(object()) == "<object object>"
    assert len(outlined("x" * 1000)) < 110
