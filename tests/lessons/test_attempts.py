"""Every check accepts what is right in other ways, and refuses what is plausible and wrong."""

import pkgutil
import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from course_lib.exercises import judging, limit
from course_lib.exercises.checks import Status, check, find
from tests.course import COURSE
from tests.lessons.attempts import Attempts

ATTEMPTS: dict[str, Attempts] = {
    exercise_id: attempts
    for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    if module.name.startswith("attempts_")
    for exercise_id, attempts in import_module(f"{__package__}.{module.name}").ATTEMPTS.items()
}
EXERCISES = [
    found[1]
    for lesson in COURSE.lessons()
    for cell in lesson.cells
    if (found := re.search(r'^check\("([^"]+)"', cell.source, re.M))
]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Lets what ends take its time on a busy machine: no attempt here is endless."""
    monkeypatch.setattr(limit, "SECONDS", 300.0)


NUM_OFTEN = 2  # of the attempts at an exercise whose check takes long


def tried(kind):
    return [
        pytest.param(
            exercise_id,
            attempt,
            id=f"{exercise_id}-{number}",
            marks=pytest.mark.drill_all if attempts.takes_long and number >= NUM_OFTEN else (),
        )
        for exercise_id, attempts in ATTEMPTS.items()
        for number, attempt in enumerate(getattr(attempts, kind))
    ]


def test_every_exercise_is_attempted():
    assert sorted(ATTEMPTS) == sorted(EXERCISES)
    assert all(attempts.wrong for attempts in ATTEMPTS.values())


@pytest.mark.parametrize(("exercise_id", "answer"), tried("right"))
def test_right(exercise_id, answer):
    assert check(exercise_id, answer).status is Status.RIGHT, check(exercise_id, answer)


@pytest.mark.parametrize(("exercise_id", "attempt"), tried("wrong"))
def test_wrong(exercise_id, attempt):
    answer, words = attempt
    result = check(exercise_id, answer)
    assert result.status is Status.WRONG
    assert words in result.message


def test_what_a_misconception_gives_is_wrong_and_gets_its_hint(monkeypatch):
    judged = []

    def note(_answer, reference, cases, *, misconceptions=None, tolerance=judging.TOLERANCE, **_options):
        judged.append((reference, [each for each in cases if not each.hint], misconceptions, tolerance))

    for exercise_id in EXERCISES:
        monkeypatch.setattr(sys.modules[find(exercise_id).verify.__module__], "judge", note, raising=False)
        check(exercise_id, lambda *inputs: inputs)
    with_hints = [table for table in judged if table[2]]
    assert len(with_hints) > len(EXERCISES) / 2
    for reference, cases, hints, tolerance in with_hints:
        found = {each: [judging._call(each, case.inputs) for case in cases] for each in (reference, *hints)}
        for misconception, hint in hints.items():
            alike = [
                hints.get(other)
                for other in found
                if all(map(partial(judging._alike, tolerance=tolerance), found[misconception], found[other]))
            ]
            assert alike[0] == hint


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_an_open_answer_says_so_and_nonsense_neither_raises_nor_passes(exercise_id):
    assert check(exercise_id, ...).status is Status.OPEN
    for nonsense in (None, "x", -1, [], {}, object(), len, lambda *_: None, lambda *inputs: inputs):
        assert not check(exercise_id, nonsense).passed, nonsense
