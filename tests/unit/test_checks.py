"""Checks of exercises: right answers pass, wrong ones get their hints, and nothing raises."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import course_lib
from course_lib import i18n
from course_lib.exercises import checks

LESSONS = sorted(
    path.stem[-2:] for path in Path(course_lib.__file__).parent.glob("exercises/lesson_[0-9][0-9].py")
)
EXERCISES = [known for lesson in LESSONS for known in checks.exercises(lesson)]


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
NONSENSE += [np.zeros((2, 3)), np.array("x"), slice(2), range(3), lambda: 1, [Hostile()], {"a": Hostile()}]


@pytest.fixture(autouse=True)
def english_again():
    yield
    i18n.set_language("en")


@pytest.fixture
def six():
    @checks.exercise("99-six", right=6, wrong=[(5, "more"), (7, "less")])
    def verify(answer):
        return None if answer == 6 else "more" if answer < 6 else "less"

    yield
    del checks._registry["99-six"]


def name(known):
    return known.exercise_id


def test_there_are_exercises():
    assert len(EXERCISES) >= 3 * len(LESSONS) > 0


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_the_right_answer_passes(known):
    assert repr(checks.check(known.exercise_id, known.right)) == "✓ Right."


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_plausible_wrong_answers_get_their_hints(known):
    assert len(known.wrong) >= 2
    for answer, hint in known.wrong:
        result = checks.check(known.exercise_id, answer)
        assert result.status is checks.Status.WRONG, answer
        assert hint in result.message, answer


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_different_mistakes_get_different_hints(known):
    assert len({checks.check(known.exercise_id, answer).message for answer, _hint in known.wrong}) >= 2


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_wrong_answers_are_no_nonsense(known):
    for answer, _hint in known.wrong:
        assert "cannot read" not in checks.check(known.exercise_id, answer).message, answer


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_nonsense_never_raises_and_never_passes(known):
    for answer in NONSENSE:
        result = checks.check(known.exercise_id, answer)
        assert not result.passed, answer
        assert result._repr_html_()


@pytest.mark.parametrize("known", EXERCISES, ids=name)
def test_an_open_answer_says_so(known):
    assert checks.check(known.exercise_id, ...).status is checks.Status.OPEN


@given(answer=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_answer_makes_a_check_raise(answer):
    for known in EXERCISES:
        checks.check(known.exercise_id, answer)


def test_a_check_says_how_an_answer_stands(six):
    assert repr(checks.check("99-six", 6)) == "✓ Right."
    assert repr(checks.check("99-six", 5)) == "✗ more"
    assert repr(checks.check("99-six", ...)).startswith("… Not answered yet.")
    assert repr(checks.check("99-six", "6")).startswith("✗ Answer with a number;")


def test_a_half_written_answer_is_open(six):
    for answer in ((6, ...), [...], {"a": ...}):
        assert checks.check("99-six", answer).status is checks.Status.OPEN


def test_an_unanswered_function_is_open():
    @checks.exercise("99-half", right=lambda n: n // 2, wrong=[])
    def half(answer):
        return None if checks.answered(answer(6)) == 3 else "no"

    assert checks.check("99-half", lambda _: ...).status is checks.Status.OPEN
    assert checks.check("99-half", lambda n: n // 2).passed
    del checks._registry["99-half"]


def test_an_unknown_exercise_says_so_whatever_its_id():
    for exercise_id in ("99-none", "no", None, ["x"], ""):
        assert "There is no exercise" in repr(checks.check(exercise_id, 1))


def test_two_exercises_of_one_id_are_refused(six):
    with pytest.raises(ValueError, match="99-six"):

        @checks.exercise("99-six", right=6, wrong=[])
        def another(answer):
            return None


def test_html_shows_code_and_escapes():
    result = checks.Result(checks.Status.WRONG, "Use `a < b`,\n<b>not</b> this.")
    assert result._repr_html_() == (
        '<div role="status"><strong>✗</strong> '
        "Use <code>a &lt; b</code>,<br>&lt;b&gt;not&lt;/b&gt; this.</div>"
    )


class Shape:
    """Behaves as a TensorShape."""

    def as_list(self):
        return [2, 3]


@pytest.mark.parametrize(
    ("answer", "expected", "equal"),
    [
        ([2, 3], (2, 3), True),
        (np.array([2, 3]), (2, 3), True),
        (np.int64(2), 2, True),
        (Shape(), (2, 3), True),
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
    ],
)
def test_same(answer, expected, equal):
    assert checks.same(answer, expected) is equal


def test_checks_speak_the_readers_language(tmp_path):
    """A catalogue of its own, so that the test does not depend on a translator's words."""
    package = tmp_path / "course_lib"
    shutil.copytree(Path(course_lib.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "locale" / "xx.po").write_text(
        'msgid ""\nmsgstr ""\n\nmsgid "Right."\nmsgstr "OIKEIN"\n', "utf-8"
    )
    code = (
        "from course_lib import i18n; from course_lib.exercises import checks; i18n.set_language('xx');"
        "checks.exercise('99-six', right=6, wrong=[])(lambda answer: None); print(checks.check('99-six', 6))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout == "✓ OIKEIN\n"


def test_checks_and_exercises_do_not_import_tensorflow():
    code = "import sys, course_lib.exercises.checks as c\n"
    code += "".join(f"assert c.exercises({lesson!r})\n" for lesson in LESSONS)
    code += "assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
