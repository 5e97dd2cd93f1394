"""Lesson 01's explorer as an answer: what readers leave in it."""

import itertools

import pytest

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.exercises.checks import Status, check
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer


def test_a_half_written_split_is_open():
    assert check("01-split", lambda whole, layout: ...).status is Status.OPEN


TASKS = ("01-explore-two-copies", "01-explore-one-copy")


@pytest.mark.parametrize("task", TASKS)
def test_an_explorer_as_the_lesson_shows_it_is_not_answered_yet(task):
    assert repr(check(task, MeshLayoutExplorer())) == (
        "… Not answered yet. Choose in the explorer above, then run this cell."
    )


def test_the_explorer_is_read_when_the_check_runs():
    explorer, (two, one) = MeshLayoutExplorer(), TASKS
    explorer.state = {**explorer.state, "layout": ["y", UNSHARDED]}
    assert check(two, explorer).passed
    assert "2 devices hold each element" in repr(check(one, explorer))
    explorer.state = {**explorer.state, "layout": ["x", "y"]}
    assert "does not split in 4 parts" in repr(check(one, explorer))
    explorer.state = {**explorer.state, "layout": ["y", "x"]}
    assert check(one, explorer).passed
    explorer.state = {**explorer.state, "num_dims": 1, "mesh": [["x", 8]], "layout": ["x", UNSHARDED]}
    assert check(one, explorer).passed


def test_each_task_has_answers_on_several_meshes():
    """So that the sentence of the lesson, eight devices and (8, 6), is all that one needs."""
    for copies, task in ((2, TASKS[0]), (1, TASKS[1])):
        for sizes in ((2, 4), (4, 2), (2, 2, 2)):
            mesh = MeshSpec(zip("xyz", sizes, strict=False))
            entries = itertools.permutations([*mesh.names, UNSHARDED, UNSHARDED], 2)
            legal = [LayoutSpec(each, mesh) for each in entries]
            right = [
                layout
                for layout in legal
                if all(n % layout.num_shards(at) == 0 for at, n in enumerate((8, 6)))
                and layout.replicas == copies
            ]
            passed = [layout for layout in right if check(task, layout.of((8, 6))).passed]
            assert passed == right, (task, sizes)
