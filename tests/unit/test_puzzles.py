"""The puzzles of `how_long`: every choice of each is tried."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from course_lib import CourseError
from tests.course import from_lesson

PUZZLES = from_lesson("how_long.puzzles", "PUZZLES")

PAGE = Path(__file__).parents[2] / "jupyter_book/pages/puzzles.md"
# For each puzzle the number of choices, of legal ones, of solutions, and the least that these take.
EXPECTED = [
    (3, 3, 2, 1_200),
    (3**2, 5, 2, 30_000),
    (3**4, 41, 3, 12_288),
    (3**4, 41, 4, 4_608),
    (3**4, 20, 3, 1_920),
    (3**4, 20, 3, 82_332),
    (2**3 + 3**3 + 4**3, 51, 3, 83_968),
    (3**5, 61, 3, 130_822),
    (3**5, 61, 3, 318_340),
    (4 * 2**4, 36, 3, 3.56),
    (8 * 2**4, 72, 2, 5.16),
    (4 * 3**4, 172, 4, 9.31),
]


def results(task) -> list:
    """Returns the numbers that each choice of a puzzle gives, None where it is illegal."""
    found = []
    for mesh in task.meshes:
        names = ["unsharded", *(name for name in mesh.names if name != "batch")]
        for splits in itertools.product(names, repeat=len(task.axes)):
            found.append(None)
            with contextlib.suppress(CourseError):
                found[-1] = task.found(mesh, dict(zip(task.axes, splits, strict=True))).numbers
    return found


@pytest.mark.parametrize(("puzzle", "expected"), [*zip(PUZZLES, EXPECTED, strict=True)])
def test_each_has_several_solutions_its_first_choice_is_none_and_par_is_the_least(puzzle, expected):
    found = results(puzzle.task)
    legal = [each for each in found if each]
    solutions = [each for each in legal if all(each[name] <= limit for name, limit in puzzle.limits.items())]
    least = min(each[puzzle.par[0]] for each in solutions)
    assert (len(found), len(legal), len(solutions), least) == expected
    assert (puzzle.par[1], found[0] in solutions) == (least, False)
    assert {puzzle.level(each) for each in solutions} == {1, 2}
    assert all(any(each[name] > limit for each in legal) for name, limit in puzzle.limits.items())


def test_the_page_asks_for_what_is_judged():
    sections = PAGE.read_text("utf-8").replace("\n", " ").split(" ## ")[1:]
    for puzzle, text in zip(PUZZLES, sections, strict=True):
        for quantity, limit in puzzle.limits.items():
            units = {
                "seconds": f"{limit} s",
                "memory": f"{limit / 1e9:.0f} GB",
                "result": f"{2 * limit:,} bytes",
            }
            told = {"collectives": "sends nothing", "nodes": "may leave its node"} | units
            assert told.get(quantity, f"{limit:,} bytes") in text, quantity
