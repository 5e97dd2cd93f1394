"""The widget of the three ways to iterate: what it shows of times that it is given."""

import pytest

from course_lib.training.records import IterationTimes
from lessons.lesson_10_custom_training.iterating_explorer import IterationExplorer
from tests.explored import choose, press, text_of


@pytest.fixture
def explorer():
    return IterationExplorer(lambda size: IterationTimes(size, 0.003, 0.002, 0.0015))


def test_a_press_shows_a_bar_for_each_way(explorer):
    assert "Choose a batch size first." in text_of(explorer.view, " ")
    choose(explorer, "batch_size", 512)
    press(explorer)
    told = text_of(explorer.view, " ")
    assert "✓ 512 images in a step" in told
    for label, figure in [
        ("loop in Python", "3.0 ms"),
        ("several steps in a call", "2.0 ms"),
        ("whole epoch", "1.5 ms"),
    ]:
        assert label in told
        assert figure in told
