"""Judging functions: misconceptions are named, the smallest failing input is shown, errors too."""

import functools
import math
import statistics
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.errors import CourseError
from course_lib.exercises.answers import NotAnswered
from course_lib.exercises.comparing import close
from course_lib.exercises.faults import fault, reason
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
        (lambda values, scale: sys.exit(3), "`SystemExit: 3`"),
        (lambda values, scale: None, "gives nothing. Does it end with `return`?"),
        (lambda values, scale: values, "A single number is asked for."),
        (lambda values, scale: [mean(values, scale)], "A single number is asked for."),
        (lambda values, scale: str(mean(values, scale)), "gives `'"),
        (lambda values, scale: True, "gives `True`"),
        (lambda values, scale: complex(mean(values, scale)), "gives `("),
        (lambda values, scale: (each for each in values), "generator object"),
        (len, "len() takes exactly one argument (2 given)"),
        (object, "takes no arguments"),
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
        lambda values, scale: sum(...),
        lambda values, scale: np.sqrt(...),
        lambda values, scale: math.sqrt(...),
        lambda values, scale: {}[...],
        lambda values, scale: mean(values, scale) if scale == 1 else ...,
    ],
)
def test_a_stub_is_not_answered(stub):
    with pytest.raises(NotAnswered):
        judged(stub)


@pytest.mark.parametrize("wrong", [lambda values, scale: values[0.5], lambda values, scale: values[..., ...]])
def test_a_message_that_tells_what_an_index_may_be_is_of_no_stub(wrong):
    assert "IndexError" in judged(wrong)


def test_an_input_may_be_told_in_words():
    assert judged(lambda values, scale: 0, cases=[Case((np.ones(2), 2), told="two ones")]) == (
        "For two ones your function gives `0`.\nWork this one out by hand, then look for the difference."
    )


def test_a_masked_number_is_no_number():
    assert "gives `masked`" in judged(lambda values, scale: np.ma.masked)


def test_what_a_function_does_to_its_inputs_does_not_last():
    def changing(values, scale):
        values *= scale
        total = values.sum()
        values[:] = np.nan
        return total / len(values)

    assert judged(changing) is None
    assert all(np.isfinite(case.inputs[0]).all() for case in CASES)


def test_nested_inputs_are_copied_too():
    def emptying(rows, names):
        total = sum(map(sum, rows))
        rows[0].clear()
        names.clear()
        return total

    cases = [Case(([[1, 2], [3]], {"a": 1})), Case(([[1], [3]], {"a": 1}))]
    assert judge(emptying, lambda rows, names: sum(map(sum, rows)), cases) is None
    assert judge(emptying, lambda rows, names: sum(map(sum, rows)), cases) is None
    assert "`rows = [[1], [3]]`" in judge(len, lambda rows, names: sum(map(sum, rows)), cases)


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
        (1.00001, 1.0, True),
        (1.00001, 1, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (float("inf"), float("inf"), True),
        (5.0, float("inf"), False),
        (True, 1, False),
        (True, True, True),
        (1, True, False),
        ((1, 2), (1, 2), True),
        ((1, 2), (1, 2, 3), False),
        (((1,), (2, 3)), ((1,), (2, 3)), True),
        (((1,), (2, 4)), ((1,), (2, 3)), False),
        ((1, "a"), (1, "a"), True),
        (3, (3,), False),
        ((3,), 3, False),
        ("3", 3, False),
        (None, 3, False),
        ((1000.0, 0.01), (1000.0, 0.0), True),
        ((1.0, 0.01), (1.0, 0.0), False),
    ],
)
def test_close(value, expected, equal):
    assert close(value, expected) is equal


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(-1e-5, 1e-5))
def test_rounding_does_not_matter(values, error):
    largest = max(map(abs, values))
    assert close(tuple(value + error * largest for value in values), tuple(values))


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


class Unprintable:
    def __repr__(self):
        raise RuntimeError


def test_what_cannot_be_printed_has_a_type():
    assert value_text(Unprintable()) == "Unprintable"
    assert "gives `Unprintable`" in judged(lambda values, scale: Unprintable())


# Messages of TensorFlow 2.21, shortened where "..." stands.
IN_AN_OPERATION = """{{function_node __wrapped__AddV2_device_/job:localhost/device:CPU:0}} \
Incompatible shapes: [2] vs. [3] [Op:AddV2] name: """
FROM_THE_COMPILER = """<unknown>:0: error: loc(fused["MatMul:", "eager_operation"]): Contracting dimension \
for matmul has sharding dimension x for the left input and y for the right input which are not equal.
tensorflow/dtensor/mlir/expansions/matmul_spmd_expander.cc:84 ::
<unknown>:0: note: loc(fused["MatMul:", "eager_operation"]): see current operation: %3 = ..."""
IN_A_GRAPH = """Graph execution error:

Detected at node Reshape defined at (most recent call last):
  File "<stdin>", line 43, in <module>

  File "/tmp/cell.py", line 10, in g

Input to reshape is a tensor with 5 values, but the requested shape has 6
\t [[{{node Reshape}}]] [Op:__inference_g_43]"""
WHILE_TRACING = """in user code:

    File "/tmp/cell.py", line 14, in h  *
        return a + tf.ones(4)

    ValueError: Dimensions must be equal, but are 5 and 4 for '{{node add}} = AddV2[T=DT_FLOAT](a, \
ones)' with input shapes: [5], [4].
"""
FROM_THE_COURSE = """in user code:

    File "/tmp/cell.py", line 9, in f  *
        return inner(a)
    File "/tmp/cell.py", line 5, in inner  *
        MeshSpec([])
    File "course_lib/specs/mesh.py", line 48, in __init__  **
        require(dims)
    File "course_lib/specs/mesh.py", line 52, in require
        raise CourseError(

    CourseError: A mesh needs at least one dimension; none was given.
      Allowed: one or more (name, size) pairs
"""
OF_A_DTENSOR = """Trying to copy a non-single-device and non-replicated DTensor is not supported. \
Input tensor is: DTensor({"CPU:0": [[1 2]], ..."""


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (IN_AN_OPERATION, "Incompatible shapes: [2] vs. [3]"),
        (
            FROM_THE_COMPILER,
            "Contracting dimension for matmul has sharding dimension x for the left input and y for the"
            " right input which are not equal.",
        ),
        (IN_A_GRAPH, "Input to reshape is a tensor with 5 values, but the requested shape has 6"),
        (OF_A_DTENSOR, "Trying to copy a non-single-device and non-replicated DTensor is not supported."),
        (
            "2 root error(s) found.\n  (0) INVALID_ARGUMENT: {{node f}} indices[0] = 7 is not in [0, 3)\n",
            "indices[0] = 7 is not in [0, 3)",
        ),
        ("my error: 3 of [[1, 2]] is wrong\nand more", "my error: 3 of [[1, 2]] is wrong"),
        ("`pack` must be called eagerly.", "'pack' must be called eagerly."),
        ("cannot use <Model object at 0x7f12ab>", "cannot use <Model object>"),
        ("", ""),
    ],
)
def test_the_reason_in_a_message_of_tensorflow(message, said):
    assert reason(message) == said


def test_what_autograph_wrapped_is_unwrapped():
    assert fault(AttributeError(WHILE_TRACING)) == (
        "It raised `ValueError: Dimensions must be equal, but are 5 and 4`,"
        " in the line `return a + tf.ones(4)`."
    )
    assert fault(RuntimeError(FROM_THE_COURSE)) == (
        "It raised this in the line `MeshSpec([])`:\nA mesh needs at least one dimension; none was given.\n"
        "  Allowed: one or more (name, size) pairs"
    )


def test_an_error_of_the_course_keeps_its_lines():
    error = CourseError("It is wrong.", allowed="what is right", cure="Do it.")
    assert fault(error) == "It is wrong.\n  Allowed: what is right\n  What to do: Do it."
