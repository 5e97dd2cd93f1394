"""The widget of the three ways to iterate: what it shows of times that it is given."""

import pytest

from course_lib import CourseError
from course_lib.training.records import IterationTimes
from lessons.lesson_10_custom_training.iterating_explorer import IterationExplorer


def text_of(tree):
    return tree if isinstance(tree, str) else " ".join(map(text_of, tree[2:]))


@pytest.fixture
def explorer():
    return IterationExplorer(lambda size: IterationTimes(size, 0.003, 0.002, 0.0015))


def test_a_press_shows_a_bar_for_each_way(explorer):
    assert "Choose a batch size first." in text_of(explorer.view)
    explorer.state = {"batch_size": 512}
    explorer.pressed()
    told = text_of(explorer.view)
    assert all(figure in told for figure in ("✓ 512 images in a step", "3.0 ms", "2.0 ms", "1.5 ms"))


def test_what_a_notebook_stores_holds_no_measured_figure(explorer):
    before = repr(explorer)
    explorer.state = {"batch_size": 64}
    explorer.pressed()
    assert repr(explorer) == before
    assert " ms" not in repr(explorer)


def test_without_a_function_it_says_what_the_button_needs():
    with pytest.raises(CourseError, match="cannot measure"):
        IterationExplorer().measure_choice()
