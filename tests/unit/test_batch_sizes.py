"""The batch-size widget, its bars, and the times that were recorded for pages without a kernel."""

import pytest

from course_lib.measured import batch_sizes, results
from course_lib.measured.batch_sizes import BATCH_SIZES, Machine
from course_lib.pictures import shapes
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.training.records import StepTimes
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_04_a_run.explorer import BatchSizeExplorer
from tests.explored import choose, nodes, press, text_of

HERE = Machine(2, 1, 2, "2.21.0")


def button(view):
    (found,) = (each for each in nodes(view) if each[0] == "button")
    return found


@pytest.fixture
def explorer():
    """A widget whose measurements take no time: 1 ms on one device, and 2 ms, 3 ms ... on eight."""
    made = BatchSizeExplorer(lambda batch_size: StepTimes(batch_size, 0.001, 0.002 + 0.001 * len(made.times)))
    return made


def test_without_a_choice_the_button_says_what_is_missing(explorer):
    assert "disabled" in button(explorer.view)[1]
    assert "Choose a batch size first." in text_of(explorer.view, " ")
    press(explorer)
    assert explorer.times == ()


def test_each_press_measures_the_chosen_batch_size_and_keeps_the_newest(explorer):
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert explorer.times == (StepTimes(64, 0.001, 0.002),)
    assert "64 reviews: eight devices 0.50 times as fast" in text_of(explorer.view, " ")
    assert "15.6 µs (1.0 ms a step)" in text_of(explorer.view, " ")
    choose(explorer, "batch_size", 8192)
    press(explorer)
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert explorer.times == (StepTimes(64, 0.001, 0.004), StepTimes(8192, 0.001, 0.003))
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
    before = explorer._repr_mimebundle_()[0]
    choose(explorer, "batch_size", 64)
    press(explorer)
    assert repr(explorer) == before["text/plain"]
    assert not any(character.isdigit() for character in repr(explorer))
    assert " ms" not in before["text/html"]


def test_a_page_shows_what_was_recorded_up_to_the_chosen_batch_size_and_says_so():
    table = page_table(BatchSizeExplorer())
    assert table["keys"] == [key({"batch_size": size}) for size in (None, *reversed(BATCH_SIZES))]
    page = BatchSizeExplorer()
    told = text_of(page_view(page, 128), " ")
    recorded = batch_sizes.recorded()
    assert "64 reviews: eight" in told
    assert "128 reviews: eight" in told
    assert "256 reviews: eight" not in told
    assert "Not measured on this page, but recorded earlier by make results:" in told
    assert recorded.machine.sentences() in told
    assert "disabled" in button(page_view(page, 128))[1]
    assert "µs" not in text_of(page_view(page, None), " ")


def page_view(explorer, batch_size):
    return shapes.to_json(explorer.tree({"batch_size": batch_size}, page=True))


def test_the_recorded_times_are_whole_and_say_how_they_were_obtained():
    recorded = batch_sizes.recorded()
    assert recorded.command == "make results"
    assert tuple(each.batch_size for each in recorded.times) == BATCH_SIZES
    assert all(each.one_device_seconds > 0 and each.eight_devices_seconds > 0 for each in recorded.times)
    assert recorded.machine.threads == 1
    assert recorded.times[0].speedup < 0.5 < recorded.times[-1].speedup


def test_what_is_saved_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_sizes, "_FOLDER", tmp_path)
    assert batch_sizes.recorded() is None
    batch_sizes.save([StepTimes(64, 0.00123456789, 0.5)], HERE, tmp_path)
    recorded = batch_sizes.recorded()
    assert recorded.times == (StepTimes(64, 0.0012346, 0.5),)
    assert recorded.machine == HERE
    monkeypatch.setattr(results, "_FOLDER", tmp_path)
    assert results.names() == ()  # no trainings are in it


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        (HERE, "TensorFlow 2.21.0 on 2 cores. Each operation uses 1 thread. 2 operations run at a time."),
        (
            Machine(1, 0, 0, "2.20.0"),
            "TensorFlow 2.20.0 on 1 core. TensorFlow chooses how many threads an operation uses."
            " TensorFlow chooses how many operations run at a time.",
        ),
    ],
)
def test_a_machine_is_told_in_sentences(machine, told):
    assert machine.sentences() == told


def test_the_longest_bar_has_the_full_width_and_the_others_their_share():
    groups = [
        Bars("small", (Bar("one", 4.0, "4"), Bar("eight", 8.0, "8"))),
        Bars("large", (Bar("one", 2.0, "2"),)),
    ]
    drawing = bars_drawing(groups)
    widths = [float(dict(each.attributes)["width"]) for each in drawing.nodes if each.tag == "rect"]
    assert widths == [60.0, 120.0, 30.0]
    assert bar_lines(groups) == ["small: one 4, eight 8", "large: one 2"]
    assert all(float(dict(each.attributes)["x"]) <= drawing.width for each in drawing.nodes)


def test_what_lesson_4_says_of_the_recorded_times_holds():
    """The fixed cost of eight devices: their step hardly grows while the batch grows eightfold."""
    found = batch_sizes.recorded()
    assert (found.command, found.machine.cores) == ("make results", 2)
    eight = [each.eight_devices_seconds for each in found.times if each.batch_size <= 512]
    assert max(eight) < 1.25 * min(eight)
    first, last = found.times[0], found.times[-1]
    assert first.speedup < 1 < last.speedup
