"""Lesson 01's explorer as an answer: what readers leave in it."""

import itertools

from course_lib import MeshSpec
from course_lib.exercises.checks import check
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer

TASK = "01-explore-one-copy"


def test_an_explorer_as_the_lesson_shows_it_is_not_answered_yet():
    assert repr(check(TASK, MeshLayoutExplorer())) == (
        "… Not answered yet. Choose in the explorer above, then run this cell."
    )


def test_the_explorer_is_read_when_the_check_runs():
    explorer = MeshLayoutExplorer()
    explorer.state = {**explorer.state, "layout": ["y", UNSHARDED]}
    assert "2 devices hold each element" in repr(check(TASK, explorer))
    explorer.state = {**explorer.state, "layout": ["x", "y"]}
    assert "does not split in 4 parts" in repr(check(TASK, explorer))
    explorer.state = {**explorer.state, "layout": ["y", "x"]}
    assert check(TASK, explorer).passed
    explorer.state = {**explorer.state, "num_dims": 1, "mesh": [["x", 8]], "layout": ["x", UNSHARDED]}
    assert check(TASK, explorer).passed


def test_the_task_has_answers_on_several_meshes():
    """So that the sentence of the lesson, eight devices and (8, 6), is all that one needs."""
    for sizes in ((2, 4), (4, 2), (8,)):
        mesh = MeshSpec(zip("xyz", sizes, strict=False))
        layouts = [
            LayoutSpec(entries, mesh)
            for entries in itertools.permutations([*mesh.names, UNSHARDED, UNSHARDED], 2)
        ]
        right = [
            layout
            for layout in layouts
            if layout.replicas == 1 and all(n % layout.num_shards(at) == 0 for at, n in enumerate((8, 6)))
        ]
        assert right
        assert all(check(TASK, layout.of((8, 6))).passed for layout in right)
