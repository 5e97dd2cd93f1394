"""Checks of exercises: right answers pass, wrong ones get their hints, and nothing raises."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from course_lib.exercises import checks
from course_lib.exercises.values import answered, same
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from tests.course import from_lesson

MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")


@pytest.fixture(autouse=True)
def own_exercises(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(checks, "_registry", dict(checks._registry))


@pytest.fixture
def six():
    @checks.exercise("example-six", right=6)
    def verify(answer):
        return None if answer == 6 else "more" if answer < 6 else "less"


@pytest.mark.parametrize(
    ("right", "forms"),
    [
        (6, [6.0, np.int16(6), np.float32(6), np.array(6), 6 / 9 + 6 / 9 + 42 / 9, Fraction(6)]),
        (0.64, [np.float32(0.64), np.array(0.64), Fraction(16, 25), Decimal("0.64")]),
        (True, [np.True_, np.array(True)]),
        ((2, 4), [[2, 4], np.array([2.0, 4.0]), (np.int64(2), 4.0), range(2, 5, 2)]),
        (((2,), (4, 6)), [[[2], [4, 6]], [np.array([2]), (4, 6.0)]]),
        ({"a": 1.5, "b": (2, 3)}, [{"b": [2, 3], "a": np.float32(1.5)}]),
    ],
    ids=str,
)
def test_one_answer_may_be_given_in_many_forms(right, forms):
    checks.exercise("example-forms", right=right)(lambda answer: None if same(answer, right) else "no")
    assert [form for form in forms if not checks.check("example-forms", form).passed] == []


def test_a_check_says_how_an_answer_stands(six):
    assert repr(checks.check("example-six", 6)) == "✓ Right."
    assert repr(checks.check("example-six", 5)) == "✗ more"
    assert repr(checks.check("example-six", ...)).startswith("… Not answered yet.")
    assert repr(checks.check("example-none", 6)).startswith("✗ There is no exercise 'example-none'.")


@pytest.mark.parametrize(("answer", "used"), [(6, 6), (6.0, 6.0), (5, 6), (..., 6), ("no number", 6)])
def test_a_lesson_goes_on_with_a_right_answer_whatever_the_readers_is(six, answer, used):
    assert checks.yours_or_ours("example-six", answer) == used


def test_a_half_written_answer_is_open(six):
    @checks.exercise("example-half", right=lambda n: n // 2)
    def half(answer):
        return None if answered(answer(6)) == 3 else "no"

    for answer in ((6, ...), [...], {"a": ...}, [[1, 2], [3, ...]], {"a": (1, [...])}):
        assert checks.check("example-six", answer).status is checks.Status.OPEN
    for answer in (lambda n: ..., lambda n: ... + n):
        assert checks.check("example-half", answer).status is checks.Status.OPEN


def test_an_entry_that_is_open_is_named(six):
    answer = {"a": 1, "b": ..., "c": ...}
    assert repr(checks.check("example-six", answer)).startswith("… Not answered yet: `b`, `c`. Replace")
    assert repr(checks.check("example-six", dict.fromkeys("ab", ...))).startswith("… Not answered yet. ")


def test_a_hint_is_escaped_and_shows_code():
    result = checks.Result(checks.Status.WRONG, "Use `a < b`,\n<b>not</b> this.")
    assert result._repr_html_() == (
        '<div role="status"><strong>✗</strong> '
        "Use <code>a &lt; b</code>,<br>&lt;b&gt;not&lt;/b&gt; this.</div>"
    )


MESH = MeshSpec([("x", 2), ("y", 4)])
ROWS = LayoutSpec(["x", UNSHARDED], MESH).of((8, 6))


@pytest.mark.parametrize(
    ("right", "answer", "hint"),
    [
        (6, "6", "value of the type `str`. Answer with a number."),
        (6, True, "value of the type `bool`. Answer with a number."),
        (True, 1, "value of the type `int`. Answer with True or False."),
        ("x", 1, "value of the type `int`. Answer with a text in quotes."),
        ((2, 4), 8, "`int`. Answer with a tuple or list."),
        ({"a": 1}, 1, "Answer with a dictionary."),
        (ROWS, 8, "Give the explorer itself to the check."),
        (len, 3, "Answer with a function: its name, not a call of it."),
    ],
)
def test_a_wrong_kind_is_told_which_is_asked_for(right, answer, hint):
    checks.exercise("example-kind", right=right)(lambda answer: None)
    assert hint in checks.check("example-kind", answer).message


@pytest.fixture
def explorer():
    @checks.exercise(
        "example-four-copies", right=ROWS, unanswered=LayoutSpec([UNSHARDED, UNSHARDED], MESH).of((8, 6))
    )
    def four_copies(answer):
        return None if answer.copies == 4 else f"{answer.copies} instead"

    return choose(MeshLayoutExplorer(), layout=[UNSHARDED, UNSHARDED])


def choose(explorer, **choices):
    explorer.state = {**explorer.state, **choices}
    return explorer


def test_the_choice_in_an_explorer_is_an_answer(explorer):
    assert repr(checks.check("example-four-copies", explorer)) == (
        "… Not answered yet. Choose in the explorer above, then run this cell."
    )
    assert checks.check("example-four-copies", choose(explorer, layout=["x", UNSHARDED])).passed
    assert (
        repr(checks.check("example-four-copies", choose(explorer, layout=["y", UNSHARDED]))) == "✗ 2 instead"
    )


def test_a_refused_choice_is_a_hint(explorer):
    result = checks.check("example-four-copies", choose(explorer, layout=["x", "x"]))
    assert repr(result) == "✗ The explorer refuses this choice: The mesh dimension 'x' splits two axes."
