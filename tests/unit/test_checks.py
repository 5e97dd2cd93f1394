"""Checks of exercises: right answers pass, wrong ones get their hints, and nothing raises."""

import numpy as np
import pytest

from course_lib.errors import CourseError
from course_lib.exercises import checks, limit
from course_lib.exercises.judging import Case, judge
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from tests.course import from_lesson

MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")

TWO = LayoutSpec(["x"], MeshSpec([("x", 2)]))


NONSENSE = [None, "", "8", 0, -1, 2.5, float("nan"), True, [], {}, object(), object, len, np.zeros((2, 3))]


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
        (6, [6.0, np.int16(6), np.float32(6), np.array(6), 6 / 9 + 6 / 9 + 42 / 9, 6 * (1 + 1e-12)]),
        (0.64, [np.float32(0.64), np.float64(0.64), np.array(0.64)]),
        (True, [np.True_, np.array(True)]),
        ((2, 4), [[2, 4], np.array([2, 4]), np.array([2.0, 4.0]), (np.int64(2), 4.0), range(2, 5, 2)]),
        (((2,), (4, 6)), [[[2], [4, 6]], [np.array([2]), (4, 6.0)]]),
        ({"a": 1.5, "b": (2, 3)}, [{"b": [2, 3], "a": np.float32(1.5)}]),
    ],
    ids=str,
)
def test_one_answer_may_be_given_in_many_forms(right, forms):
    checks.exercise("example-forms", right=right)(lambda answer: None if checks.same(answer, right) else "no")
    assert [form for form in forms if not checks.check("example-forms", form).passed] == []


def test_no_nonsense_raises_or_passes(six):
    for answer in NONSENSE:
        result = checks.check("example-six", answer)
        assert not result.passed, answer
        assert result._repr_html_()


def test_a_check_says_how_an_answer_stands(six):
    assert repr(checks.check("example-six", 6)) == "✓ Right."
    assert repr(checks.check("example-six", 5)) == "✗ more"
    assert repr(checks.check("example-six", ...)).startswith("… Not answered yet.")
    assert repr(checks.check("example-six", "6")).startswith("✗ The check cannot read this value of the type")


@pytest.mark.parametrize(("answer", "used"), [(6, 6), (6.0, 6.0), (5, 6), (..., 6), ("no number", 6)])
def test_a_lesson_goes_on_with_a_right_answer_whatever_the_readers_is(six, answer, used):
    assert checks.yours_or_ours("example-six", answer) == used


def test_a_lesson_cannot_go_on_with_an_exercise_that_is_not_there():
    with pytest.raises(LookupError, match="example-none"):
        checks.yours_or_ours("example-none", 6)


def test_a_half_written_answer_is_open(six):
    for answer in ((6, ...), [...], {"a": ...}, [[1, 2], [3, ...]], {"a": (1, [...])}):
        assert checks.check("example-six", answer).status is checks.Status.OPEN


def test_an_unanswered_function_is_open():
    @checks.exercise("example-half", right=lambda n: n // 2)
    def half(answer):
        return None if checks.answered(answer(6)) == 3 else "no"

    assert checks.check("example-half", lambda _: ...).status is checks.Status.OPEN
    assert checks.check("example-half", lambda n: n // ...).status is checks.Status.OPEN
    assert checks.check("example-half", lambda n: n // 2).passed
    assert checks.check("example-half", lambda n: n / 0).message.startswith(
        "Your function fails.\nIt raised `ZeroDivisionError: division by zero`, in the line `"
    )


def test_html_shows_code_and_escapes():
    result = checks.Result(checks.Status.WRONG, "Use `a < b`,\n<b>not</b> this.")
    assert result._repr_html_() == (
        '<div role="status"><strong>✗</strong> '
        "Use <code>a &lt; b</code>,<br>&lt;b&gt;not&lt;/b&gt; this.</div>"
    )


@pytest.mark.parametrize(
    ("answer", "expected", "equal"),
    [
        (True, 1, False),
        (1, True, False),
        ((True, 2), (1, 2), False),
        ((2,), (2, 3), False),
        (2, (2,), False),
        ((2,), 2, False),
        ("2", 2, False),
        (10.9, 10, False),
        (0.6401, 0.64, False),
        (230984.5, 230984, False),
        (LayoutSpec(["x"], MeshSpec([("x", 2)])).of((4,), element_bytes=4), TWO.of((4,)), True),
        (TWO.of((6,)), TWO.of((4,)), False),
        (TWO, TWO.of((4,)), False),
    ],
)
def test_same(answer, expected, equal):
    assert checks.same(answer, expected) is equal


@pytest.mark.parametrize(
    ("right", "answer", "hint"),
    [
        (6, "6", "value of the type `str`. Answer with a number."),
        (6, True, "value of the type `bool`. Answer with a number."),
        (True, 1, "value of the type `int`. Answer with True or False."),
        ("x", 1, "value of the type `int`. Answer with a text in quotes."),
        ((2, 4), 8, "`int`. Answer with a tuple or list of numbers."),
        ((2, 4), ("2", 4), "In place 0: The check cannot read this value of the type `str`. Answer with"),
        ({"a": 1}, 1, "Answer with a dictionary."),
        (TWO, ["x"], "Answer with a layout: LayoutSpec(entries, mesh)."),
        (TWO.mesh, TWO, "Answer with a mesh: MeshSpec([(name, size), (name, size)])."),
        (TWO.of((4,)), TWO, "Give the explorer itself to the check."),
        (len, 3, "Answer with a function: its name, not a call of it."),
    ],
)
def test_a_wrong_kind_is_told_which_is_asked_for(right, answer, hint):
    @checks.exercise("example-kind", right=right)
    def kind(answer):
        raise RuntimeError("this exercise cannot read anything")

    assert hint in checks.check("example-kind", answer).message
    assert not checks.check("example-kind", right).passed


MESH = MeshSpec([("x", 2), ("y", 4)])


@pytest.fixture
def explorer():
    @checks.exercise(
        "example-four-copies",
        right=LayoutSpec(["x", UNSHARDED], MESH).of((8, 6)),
        unanswered=LayoutSpec([UNSHARDED, UNSHARDED], MESH).of((8, 6)),
    )
    def four_copies(answer):
        return None if answer.copies == 4 else f"{answer.copies} instead"

    @checks.exercise(
        "example-refused",
        right=checks.refusal(LayoutSpec, ["x", "x"], MESH),
        unanswered=LayoutSpec([UNSHARDED, UNSHARDED], MESH).of((8, 6)),
    )
    def refused(answer):
        return None if isinstance(answer, CourseError) else "This one is legal."

    return choose(MeshLayoutExplorer(), layout=[UNSHARDED, UNSHARDED])


def choose(explorer, **choices):
    explorer.state = {**explorer.state, **choices}
    return explorer


def test_an_explorer_that_nobody_touched_is_open(explorer):
    for exercise_id in ("example-four-copies", "example-refused"):
        result = checks.check(exercise_id, explorer)
        assert repr(result) == "… Not answered yet. Choose in the explorer above, then run this cell."


def test_the_choice_in_an_explorer_is_an_answer(explorer):
    assert checks.check("example-four-copies", choose(explorer, layout=["x", UNSHARDED])).passed
    assert checks.check("example-four-copies", choose(explorer, shape=[4, 4])).passed
    assert (
        repr(checks.check("example-four-copies", choose(explorer, layout=["y", UNSHARDED]))) == "✗ 2 instead"
    )


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"layout": ["y", "x"], "shape": [6, 8]}, "Axis 0 of length 6 does not split in 4 parts over 'y'."),
        ({"layout": ["x", "x"]}, "The mesh dimension 'x' splits two axes."),
        ({"mesh": [["x", 16], ["y", 4]]}, "The explorer cannot show the mesh x 16 × y 4."),
    ],
)
def test_a_refused_choice_is_a_hint_or_the_answer(explorer, choice, problem):
    choose(explorer, **choice)
    result = checks.check("example-four-copies", explorer)
    assert repr(result) == f"✗ The explorer refuses this choice: {problem}"
    assert checks.check("example-refused", explorer).passed
    choose(explorer, mesh=[["x", 2], ["y", 4]], shape=[8, 8], layout=["x", "y"])
    assert repr(checks.check("example-refused", explorer)) == "✗ This one is legal."


def test_a_course_error_while_checking_is_the_hint(six):
    @checks.exercise("example-shape", right=TWO)
    def shape(answer):
        return str(answer.local_shape((4, 4)))

    assert "✗ The layout [x] has 1 axis, the tensor (4, 4) has 2." in repr(checks.check("example-shape", TWO))


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
