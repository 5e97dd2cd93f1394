"""Live training: what it shows, that it can be stopped, and that it never hides an error."""

from __future__ import annotations

import asyncio
import base64
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.pictures.curves import Panels
from course_lib.training.records import History
from course_lib.watch import live
from course_lib.watch.curves import curves
from tests.fake_run import FakeRun, epoch_record, history
from tests.kernels import execute, notebook_of

FIRST = "import course_lib\ncourse_lib.setup()\n"
FIRST += "from course_lib.watch import live\nfrom tests.fake_run import FakeRun"
LAST = "print(len(history.steps), run.closed_after, history.stopped)"


def test_outside_a_notebook_it_trains_and_prints_a_line_an_epoch(capsys):
    run = FakeRun()
    seen = asyncio.run(live.watch(run))
    assert seen == history(120)
    assert run.closed_after == 120
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == [
        f"epoch {epoch}, at step {40 * epoch}" for epoch in (1, 2, 3)
    ]


@pytest.mark.parametrize("start_step", [60, 0, 120])
def test_a_resumed_run_continues_the_curves_and_repeats_no_step(start_step):
    before = history(70 if start_step < 70 else 120)
    seen = asyncio.run(live.watch(FakeRun(start_step=start_step), history=before))
    assert seen == history(120)
    assert not seen.stopped
    assert before == history(len(before.steps))


class StopAt(FakeRun):
    """Presses Stop while a step is under way."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.stop, self.stop_step = threading.Event(), step

    def __iter__(self):
        for record in super().__iter__():
            if self._step == self.stop_step:
                self.stop.set()
            yield record


@pytest.mark.parametrize(("step", "epochs"), [(1, 0), (39, 0), (40, 1), (41, 1), (119, 2)])
def test_stop_ends_after_the_step_under_way_and_after_the_evaluation_that_belongs_to_it(step, epochs):
    run, seen = StopAt(step), History()
    live.collect(run, iter(run), seen, run.stop)
    assert seen.steps == history(step).steps
    assert seen.epochs == [epoch_record(epoch) for epoch in range(1, epochs + 1)]
    assert run.closed_after == step


def test_an_error_in_training_brings_the_records_so_far(language):
    run = FakeRun(fail_at=50)
    with pytest.raises(RuntimeError) as caught:
        asyncio.run(live.watch(run))
    assert caught.value.history.steps == history(49).steps
    assert caught.value.history.epochs == history(49).epochs
    (note,) = caught.value.__notes__
    assert "49" in note
    assert "import sys; history = sys.last_value.history" in note
    assert ("are kept" in note) is (language == "en")
    assert run.closed_after == 49
    assert not caught.value.history.stopped  # the reader did not


refreshes = st.lists(st.tuples(st.floats(0.001, 3), st.floats(0, 3)), min_size=1, max_size=20)


@given(refreshes, st.floats(0.001, 0.5))
def test_refreshing_uses_at_most_a_fortieth_of_the_time(durations, tick):
    now, used = [0.0], [0.0]
    pace = live.Pace(clock=lambda: now[0], processor=lambda: used[0])
    for drawing, waiting in durations:
        while not pace.is_due():
            now[0] += tick

        def refresh(drawing: float = drawing, waiting: float = waiting) -> None:
            used[0] += drawing
            now[0] += drawing + waiting

        pace.time(refresh)
    while not pace.is_due():
        now[0] += tick
    assert used[0] <= now[0] / 40


WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def executed():
    cells = (FIRST, "run = FakeRun(seconds=0.005)\nhistory = await live.watch(run)", LAST)
    return execute(notebook_of(*cells))


def outputs(notebook, cell=1):
    return notebook.cells[cell].outputs


def test_in_a_notebook_it_leaves_the_last_picture_its_words_and_a_note(executed):
    controls, picture = outputs(executed)
    assert controls.data["text/plain"] == (
        "While this cell runs, a progress bar and a Stop button appear here."
    )
    assert controls.data["text/plain"] in controls.data["text/html"]
    assert picture.data["text/plain"] == "Picture: loss and accuracy over the steps."
    assert picture.metadata["image/png"]["alt"].startswith("Curves of loss and accuracy, at step 120: train")
    assert outputs(executed, 2)[0].text == "120 120 False\n"


def test_the_picture_is_drawn_from_the_final_numbers(executed):
    panels = Panels([""], 120, 20)
    panels.show([curves(history(120))])
    stored = outputs(executed)[1].data["image/png"]
    assert base64.b64decode(stored) == panels.png()


def test_the_widgets_say_that_it_is_over_and_hold_no_time(executed):
    models = executed.metadata.widgets[WIDGET_STATE].state.values()
    states = {model.model_name: model.state for model in models}
    assert states["ButtonModel"].disabled
    assert states["IntProgressModel"].value == states["IntProgressModel"].max == 120
    assert states["HTMLModel"].value == "step 120 / 120, epoch 3 / 3"


@pytest.mark.parametrize("gesture", ["click Stop", "interrupt"])
def test_the_reader_can_stop_a_cell_that_trains(gesture):
    cells = (FIRST, "run = FakeRun(epochs=1000, seconds=0.01)\nhistory = await live.watch(run)", LAST)
    notebook = execute(notebook_of(*cells), gesture=gesture)
    steps, closed_after, stopped = outputs(notebook, 2)[0].text.split()
    assert (steps, stopped) == (closed_after, "True")
    assert int(steps) < 40_000
    assert f"at step {steps}: train" in outputs(notebook)[1].metadata["image/png"]["alt"]
    states = notebook.metadata.widgets[WIDGET_STATE].state.values()
    shown = [model.state.value for model in states if model.model_name == "HTMLModel"]
    assert shown == [f"Stopped after step {steps} of 40000."]


def test_in_a_notebook_an_error_in_training_ends_the_cell_and_the_next_gets_the_records_as_its_note_says():
    failing = "run = FakeRun(fail_at=50)\nhistory = await live.watch(run)"
    notebook = notebook_of(FIRST, failing, "import sys; history = sys.last_value.history", LAST)
    notebook.cells[1].metadata.tags = ["raises-exception"]
    executed = execute(notebook)
    *shown, error = outputs(executed)
    assert (error.ename, error.evalue) == ("RuntimeError", "the disk is full")
    assert "fake_run.py" in "".join(error.traceback)
    assert "at step 49: " in shown[1].metadata["image/png"]["alt"]
    assert outputs(executed, 3)[0].text == "49 49 False\n"
