"""The widget of the three ways to iterate: what it shows of times that it is given."""

import pytest

from course_lib.explorers import measuring
from tests.course import from_lesson
from tests.explored import choose, press, text_of

iterating_explorer = from_lesson("custom_training", "iterating_explorer")
IterationExplorer, IterationTimes = from_lesson(
    "custom_training.iterating_explorer", "IterationExplorer", "IterationTimes"
)


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


def test_each_way_gets_the_median_of_three_turns_after_one_that_compiles(monkeypatch):
    took = iter([9, 9, 9, 40, 20, 10, 60, 30, 10, 20, 80, 10])
    monkeypatch.setattr(measuring, "_seconds", lambda way: next(took))
    measure = iterating_explorer.measuring(lambda size: [list, list, list], steps=20)
    assert measure(64) == IterationTimes(64, for_loop=2, several_steps=1.5, whole_epoch=0.5)
