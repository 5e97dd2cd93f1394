"""Checks of exercises: right answers pass, wrong ones get their hints, and nothing raises."""

import subprocess
import sys

import numpy as np
import pytest

from course_lib import i18n
from course_lib.errors import CourseError
from course_lib.exercises import checks, limit
from course_lib.exercises.judging import Case, judge
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer
from tests.answer_forms import Shape, forms

TWO = LayoutSpec(["x"], MeshSpec([("x", 2)]))


class Hostile:
    """Raises whatever one asks of it."""

    def __eq__(self, other):
        raise RuntimeError

    def __bool__(self):
        raise RuntimeError

    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError

    __hash__ = None


NONSENSE = [
    None,
    "",
    "8",
    b"x",
    0,
    -1,
    2.5,
    float("nan"),
    True,
    [],
    {},
    set(),
    object(),
    object,
    Hostile(),
    len,
]
ENDLESS = []
ENDLESS.append(ENDLESS)
NONSENSE += [
    ENDLESS,
    np.zeros((2, 3)),
    np.array("x"),
    slice(2),
    range(3),
    lambda: 1,
    [Hostile()],
    {"a": Hostile()},
]


@pytest.fixture(autouse=True)
def english_again():
    yield
    i18n.set_language("en")


@pytest.fixture
def six():
    @checks.exercise("99-six", right=6)
    def verify(answer):
        return None if answer == 6 else "more" if answer < 6 else "less"

    yield
    del checks._registry["99-six"]


@pytest.mark.parametrize(
    "right", [6, 2.5, True, "text", (2, 4), ((2,), (4, 6)), {"a": 1.5}, TWO, TWO.mesh, len], ids=repr
)
def test_one_answer_may_be_given_in_many_forms(right):
    checks.exercise("99-forms", right=right)(lambda answer: None if checks.same(answer, right) else "no")
    try:
        if not callable(right):
            assert [form for form in forms(right) if not checks.check("99-forms", form).passed] == []
    finally:
        del checks._registry["99-forms"]


def test_no_nonsense_raises_or_passes(six):
    for answer in NONSENSE:
        result = checks.check("99-six", answer)
        assert not result.passed, answer
        assert result._repr_html_()


def test_a_check_says_how_an_answer_stands(six):
    assert repr(checks.check("99-six", 6)) == "✓ Right."
    assert repr(checks.check("99-six", 5)) == "✗ more"
    assert repr(checks.check("99-six", ...)).startswith("… Not answered yet.")
    assert repr(checks.check("99-six", "6")).startswith(
        "✗ The check cannot read this value of the type `str`."
    )


@pytest.mark.parametrize(("answer", "used"), [(6, 6), (6.0, 6.0), (5, 6), (..., 6), ("no number", 6)])
def test_a_lesson_goes_on_with_a_right_answer_whatever_the_readers_is(six, answer, used):
    assert checks.yours_or_ours("99-six", answer) == used


def test_a_lesson_cannot_go_on_with_an_exercise_that_is_not_there():
    with pytest.raises(LookupError, match="99-none"):
        checks.yours_or_ours("99-none", 6)


def test_a_half_written_answer_is_open(six):
    for answer in ((6, ...), [...], {"a": ...}, [[1, 2], [3, ...]], {"a": (1, [...])}):
        assert checks.check("99-six", answer).status is checks.Status.OPEN


def test_an_unanswered_function_is_open():
    @checks.exercise("99-half", right=lambda n: n // 2)
    def half(answer):
        return None if checks.answered(answer(6)) == 3 else "no"

    assert checks.check("99-half", lambda _: ...).status is checks.Status.OPEN
    assert checks.check("99-half", lambda n: n // ...).status is checks.Status.OPEN
    assert checks.check("99-half", lambda n: n // 2).passed
    assert checks.check("99-half", lambda n: n / 0).message.startswith(
        "Your function fails.\nIt raised `ZeroDivisionError: division by zero`, in the line `"
    )
    del checks._registry["99-half"]


def test_an_unknown_exercise_says_so_whatever_its_id():
    for exercise_id in ("99-none", "no", None, ["x"], ""):
        assert "There is no exercise" in repr(checks.check(exercise_id, 1))


def test_two_exercises_of_one_id_are_refused(six):
    with pytest.raises(ValueError, match="99-six"):

        @checks.exercise("99-six", right=6)
        def another(answer):
            return None


def test_html_shows_code_and_escapes():
    result = checks.Result(checks.Status.WRONG, "Use `a < b`,\n<b>not</b> this.")
    assert result._repr_html_() == (
        '<div role="status"><strong>✗</strong> '
        "Use <code>a &lt; b</code>,<br>&lt;b&gt;not&lt;/b&gt; this.</div>"
    )


@pytest.mark.parametrize(
    ("answer", "expected", "equal"),
    [
        ([2, 3], (2, 3), True),
        (np.array([2, 3]), (2, 3), True),
        (np.int64(2), 2, True),
        (Shape([2, 3]), (2, 3), True),
        ((2, [3, 4]), (2, (3, 4)), True),
        (2.0, 2, True),
        (True, 1, False),
        (1, True, False),
        (True, True, True),
        ((True, 2), (1, 2), False),
        ((2,), (2, 3), False),
        (2, (2,), False),
        ((2,), 2, False),
        ("2", 2, False),
        (None, None, True),
        (Hostile(), 2, False),
        ([Hostile()], (2,), False),
        (np.zeros((2, 2)), 0, False),
        (10.9, 10, False),
        (np.float32(0.64), 0.64, True),
        (0.6401, 0.64, False),
        (3 * (2 / 3), 2, True),
        (230984.5, 230984, False),
        (np.array(True), 1, False),
        ([[1, 2], np.array([3, 4])], ((1, 2), (3, 4)), True),
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
        (6, (6,), "value of the type `tuple`. Answer with a number."),
        (6, lambda: 6, "value of the type `function`. Answer with a number."),
        (True, 1, "value of the type `int`. Answer with True or False."),
        ("x", 1, "value of the type `int`. Answer with a text in quotes."),
        ((2, 4), 8, "`int`. Answer with a tuple or list of numbers."),
        (
            (2, 4),
            ("2", 4),
            "In place 0: The check cannot read this value of the type `str`. Answer with a number.",
        ),
        (
            (2, 4),
            iter((2, 4)),
            "`tuple_iterator`. Answer with",
        ),
        (
            ((2,), (4,)),
            (2, 4),
            "`int`. Answer with a tuple or list of numbers.",
        ),
        ({"a": 1}, 1, "Answer with a dictionary."),
        (TWO, ["x"], "Answer with a layout: LayoutSpec(entries, mesh)."),
        (TWO.mesh, TWO, "Answer with a mesh: MeshSpec([(name, size), (name, size)])."),
        (TWO.of((4,)), TWO, "Give the explorer itself to the check."),
        (len, 3, "Answer with a function: its name, not a call of it."),
        (b"x", Hostile(), "Read once more what kind of value is asked for."),
    ],
)
def test_a_wrong_kind_is_told_which_is_asked_for(right, answer, hint):
    @checks.exercise("99-kind", right=right)
    def kind(answer):
        raise RuntimeError("this exercise cannot read anything")

    try:
        assert hint in checks.check("99-kind", answer).message
        assert not checks.check("99-kind", right).passed
    finally:
        del checks._registry["99-kind"]


MESH = MeshSpec([("x", 2), ("y", 4)])


@pytest.fixture
def explorer():
    @checks.exercise(
        "99-four-copies",
        right=LayoutSpec(["x", UNSHARDED], MESH).of((8, 6)),
        unanswered=LayoutSpec([UNSHARDED, UNSHARDED], MESH).of((8, 6)),
    )
    def four_copies(answer):
        return None if answer.copies == 4 else f"{answer.copies} instead"

    @checks.exercise(
        "99-refused",
        right=checks.refusal(LayoutSpec, ["x", "x"], MESH),
        unanswered=LayoutSpec([UNSHARDED, UNSHARDED], MESH).of((8, 6)),
    )
    def refused(answer):
        return None if isinstance(answer, CourseError) else "This one is legal."

    yield MeshLayoutExplorer(mesh=MESH, global_shape=(8, 6), sharding_specs=[UNSHARDED] * 2)
    del checks._registry["99-four-copies"], checks._registry["99-refused"]


def choose(explorer, **choices):
    explorer.state = {**explorer.state, **choices}
    return explorer


def test_an_explorer_that_nobody_touched_is_open(explorer):
    for exercise_id in ("99-four-copies", "99-refused"):
        result = checks.check(exercise_id, explorer)
        assert repr(result) == "… Not answered yet. Choose in the explorer above, then run this cell."


def test_the_choice_in_an_explorer_is_an_answer(explorer):
    assert checks.check("99-four-copies", choose(explorer, layout=["x", UNSHARDED])).passed
    assert checks.check("99-four-copies", choose(explorer, shape=[4, 4])).passed
    assert repr(checks.check("99-four-copies", choose(explorer, layout=["y", UNSHARDED]))) == "✗ 2 instead"


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
    result = checks.check("99-four-copies", explorer)
    assert repr(result) == f"✗ The explorer refuses this choice: {problem}"
    assert checks.check("99-refused", explorer).passed
    choose(explorer, mesh=[["x", 2], ["y", 4]], shape=[8, 8], layout=["x", "y"])
    assert repr(checks.check("99-refused", explorer)) == "✗ This one is legal."


def test_only_what_is_refused_is_a_refusal():
    with pytest.raises(ValueError, match="legal"):
        checks.refusal(LayoutSpec, ["x"], MESH)


def test_a_course_error_while_checking_is_the_hint(six):
    @checks.exercise("99-shape", right=TWO)
    def shape(answer):
        return str(answer.local_shape((4, 4)))

    assert "✗ The layout [x] has 1 axis, the tensor (4, 4) has 2." in repr(checks.check("99-shape", TWO))
    del checks._registry["99-shape"]


def test_checks_and_exercises_do_not_import_tensorflow():
    code = (
        "import sys, course_lib.exercises.checks as checks\n"
        "for number in range(1, 12): checks.find(f'{number:02d}-none')\n"
        "assert 'tensorflow' not in sys.modules and 'lessons.lesson_11_many_processes.checks' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
