"""The batch-size widget, and its bars."""

import pytest

from course_lib.measured.files import Record
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.widgets.base import key
from tests.course import from_lesson
from tests.explored import choose, nodes, press, text_of

BATCH_SIZES, BatchSizeExplorer = from_lesson("faster.explorer", "BATCH_SIZES", "BatchSizeExplorer")
step_times = from_lesson("faster", "step_times")


def recorded(size, one, eight):
    return {"batch_size": size, "one_device_seconds": one, "eight_devices_seconds": eight}


def button(view):
    (found,) = (each for each in nodes(view) if each[0] == "button")
    return found


@pytest.fixture
def explorer():
    """A widget whose measurements take no time: 1 ms on one device, and 2 ms, 3 ms ... on eight."""
    made = BatchSizeExplorer(lambda size: Record(recorded(size, 0.001, 0.002 + 0.001 * len(made.times))))
    return made


def test_without_a_choice_or_a_function_it_says_what_is_missing(explorer):
    assert "disabled" in button(explorer.view)[1]
    assert "Choose a batch size first." in text_of(explorer.view, " ")
    choose(explorer, "batch_size", 65)  # is not offered
    press(explorer)
    assert (explorer.state, explorer.times) == ({"batch_size": None}, ())


def test_each_press_measures_the_chosen_batch_size_and_keeps_the_newest(explorer):
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert explorer.times == (recorded(64, 0.001, 0.002),)
    assert "64 reviews: eight devices 0.50 times as fast" in text_of(explorer.view, " ")
    assert "15.6 µs (1.0 ms a step)" in text_of(explorer.view, " ")
    choose(explorer, "batch_size", 8192)
    press(explorer)
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert explorer.times == (recorded(64, 0.001, 0.004), recorded(8192, 0.001, 0.003))
    assert "✓ 64 reviews: eight devices 0.25 times as fast" in text_of(explorer.view, " ")


def test_it_says_with_how_many_cores_and_threads_it_measured(explorer, monkeypatch):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "2")
    choose(explorer, "batch_size", 512)
    press(explorer)
    told = text_of(explorer.view, " ")
    assert "Measured here: TensorFlow" in told
    assert "Each operation uses 1 thread. 2 operations run at a time." in told


def test_what_a_notebook_stores_holds_no_measured_figure(explorer):
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert "(1.0 ms a step)" in text_of(explorer.view)
    assert "(1.0 ms a step)" not in repr(explorer) + explorer.to_html()


def test_a_page_shows_what_was_recorded_up_to_the_chosen_batch_size_and_says_so():
    _file, table = next(BatchSizeExplorer().page_tables())
    assert table["keys"] == [key({"batch_size": size}) for size in (None, *BATCH_SIZES)]
    page = BatchSizeExplorer()
    told = text_of(page.page_tree({"batch_size": 128}), " ")
    assert "64 reviews: eight" in told
    assert "128 reviews: eight" in told
    assert "256 reviews: eight" not in told
    assert "Not measured on this page, but recorded earlier by make results:" in told
    assert "TensorFlow 2.21.0 on 2 cores." in told
    assert "disabled" in button(page.page_tree({"batch_size": 128}))[1]
    assert "µs" not in text_of(page.page_tree({"batch_size": None}), " ")


def test_small_batches_take_several_steps_a_turn_and_each_waits_for_its_last():
    taken, waited = [], []

    class Loss:
        def __float__(self):
            waited.append(len(taken))
            return 0.0

    def step():
        taken.append("step")
        return Loss(), 0

    times = step_times.measuring(lambda size: (step, step))(512)
    assert (times.batch_size, len(taken), waited) == (512, 2 * 4 * 4, [*range(4, 33, 4)])
    assert 0 < times.one_device_seconds < 0.1


def test_the_longest_bar_has_the_full_width_and_the_others_their_share():
    groups = [
        Bars("small", (Bar("one", 4.0, "4"), Bar("eight", 8.0, "8"))),
        Bars("large", (Bar("one", 2.0, "2"),)),
    ]
    drawing = bars_drawing(groups)
    widths = [float(each[1]["width"]) for each in drawing.nodes if each[0] == "rect"]
    assert widths == [60.0, 120.0, 30.0]
    assert bar_lines(groups) == ["small: one 4, eight 8", "large: one 2"]
    assert all(float(each[1]["x"]) <= drawing.width for each in drawing.nodes)
