"""The puzzles: every choice of each is tried."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from course_lib import CourseError
from lessons.scale.published import EFFICIENCY, trainings
from lessons.scale.puzzles.all_puzzles import PUZZLES
from lessons.scale.puzzles.puzzle_widget import Puzzle

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
    (4 * 2**4, 36, 5, 3.2),
    (8 * 2**4, 72, 3, 5.26),
    (4 * 3**4, 172, 5, 8.61),
    (4 * 5, 20, 3, 4.5),
    (4 * 4 * 4, 64, 4, 0.86),
    (4 * 4 * 4 * 3, 101, 9, 25.9),
    (4 * 3 * 3 * 3 * 3, 297, 5, 8.09),
]
# What a page asks a browser to load of a puzzle; of several, as the reader comes to them.
MOST_BYTES = 650_000


def results(task) -> list:
    """Returns each choice of a puzzle with the numbers that it gives, None where it is illegal."""
    found = []
    for choice in task.choices():
        numbers = None
        with contextlib.suppress(CourseError):
            numbers = task.found(choice).numbers
        found.append((choice, numbers))
    return found


@pytest.mark.parametrize(("puzzle", "expected"), [*zip(PUZZLES, EXPECTED, strict=True)])
def test_each_has_several_solutions_its_first_choice_is_none_and_par_is_the_least(puzzle, expected):
    found = [numbers for _choice, numbers in results(puzzle.task)]
    legal = [each for each in found if each]
    solutions = [each for each in legal if all(each[name] <= limit for name, limit in puzzle.limits.items())]
    least = min(each[puzzle.par[0]] for each in solutions)
    assert (len(found), len(legal), len(solutions), least) == expected
    assert puzzle.par[1] == least
    assert puzzle.level(puzzle.task.found(puzzle.task.settled(puzzle.first)).numbers) == 0
    assert {puzzle.level(each) for each in solutions} == {1, 2}
    assert all(any(each[name] > limit for each in legal) for name, limit in puzzle.limits.items())


@pytest.mark.parametrize(
    ("number", "roads"),
    [  # tensor parallelism, stages, ZeRO
        (13, {(8, 4, 0), (8, 8, 0)}),
        (14, {(1, 1, 3), (2, 1, 2), (2, 1, 3)}),
        (15, {(4, 16, 0), (8, 8, 0), (8, 16, 0)}),
        (16, {(1, 4, 1), (2, 2, 1), (2, 4, 1), (4, 1, 1)}),
    ],
)
def test_several_roads_lead_to_a_solution(number, roads):
    puzzle = PUZZLES[number - 1]
    solved = [
        {**puzzle.task.given, **choice} for choice, at in results(puzzle.task) if at and puzzle.level(at)
    ]
    assert {(each["model"], each["stage"], each["zero"]) for each in solved} == roads


def test_what_nvidia_published_is_a_solution():
    chosen = {"model": 8, "stage": 8, "microbatches": 48, "chunks": 2}
    found = PUZZLES[14].task.found(chosen)
    assert (PUZZLES[14].level(found.numbers), found.numbers["seconds"]) == (1, 28.3)
    (published,) = (each for each in trainings() if each.settings["name"] == "145.6 B")
    assert found.setting.cost == published.cost


def test_the_page_asks_for_what_is_judged():
    _introduction, *sections = PAGE.read_text("utf-8").replace("\n", " ").split(" ## ")
    for puzzle, text in zip(PUZZLES, sections, strict=True):
        for quantity, limit in puzzle.limits.items():
            units = {
                "seconds": f"{limit} s",
                "exchanged": f"{limit} s",
                "waiting": f"{limit} %",
                "memory": f"{limit / 1e9:.0f} GB",
                "result": f"{2 * limit:,} bytes",
            }
            told = {"collectives": "sends nothing", "nodes": "may leave its node"} | units
            assert told.get(quantity, f"{limit:,} bytes") in text, quantity
    assert all(f"{100 * EFFICIENCY:.0f} % of " in sections[number - 1] for number in (10, 16))


@pytest.mark.parametrize("number", [9, 12, 16])
def test_its_table_is_no_larger_than_that_of_an_explorer(number):
    _file, table = next(Puzzle(number).page_tables())
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < MOST_BYTES
