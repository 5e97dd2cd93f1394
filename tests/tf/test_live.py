"""Live training: what it shows, that it can be stopped, and that it never hides an error."""

from __future__ import annotations

import asyncio
import base64
import copy
import os
import subprocess
import sys
import threading
import traceback

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError, i18n
from course_lib.pictures.curves import Panels
from course_lib.training.records import History
from course_lib.watch import live
from course_lib.watch.curves import curves
from course_lib.watch.views import TerminalView
from tests.fake_run import FakeRun, epoch_record, history
from tests.kernels import ROOT, execute, notebook_of
from tools.lesson.stored_outputs import WIDGET_STATE, normalised

FIRST = "import course_lib\ncourse_lib.setup()\n"
FIRST += "from course_lib.watch import live\nfrom tests.fake_run import FakeRun"
LAST = "print(len(history.steps), run.closed_after, history.stopped)"


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    return request.param


def test_outside_a_notebook_it_trains_and_prints_a_line_an_epoch(capsys):
    run = FakeRun()
    seen = asyncio.run(live.watch(run))
    assert seen == history(120)
    assert run.closed_after == 120
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == [
        f"epoch {epoch}, at step {40 * epoch}" for epoch in (1, 2, 3)
    ]


def test_a_resumed_run_continues_the_curves_and_repeats_no_step():
    before = history(70)
    seen = asyncio.run(live.watch(FakeRun(start_step=60), history=before))
    assert seen == history(120)
    assert before == history(70)


def test_a_run_from_the_start_drops_the_curves_of_another():
    assert asyncio.run(live.watch(FakeRun(), history=history(90))) == history(120)


def test_a_run_that_was_already_over_shows_what_was_there():
    seen = asyncio.run(live.watch(FakeRun(start_step=120), history=history(120)))
    assert seen == history(120)
    assert not seen.stopped


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


def test_control_c_ends_a_script_like_stop(capsys):
    class CancelledOnceUnderWay(FakeRun):
        def __iter__(self):
            for record in super().__iter__():
                loop.call_soon_threadsafe(task.cancel)
                yield record

    run = CancelledOnceUnderWay(epochs=1000, seconds=0.001)
    loop = asyncio.new_event_loop()
    task = loop.create_task(live.watch(run))
    seen = loop.run_until_complete(task)
    loop.close()
    assert seen.stopped
    assert run.closed_after == len(seen.steps) < run.total_steps
    assert f"Stopped after step {run.closed_after} of 40000." in capsys.readouterr().out


class EndsAtOnce(FakeRun):
    """Is ended by somebody else before its first record."""

    def __iter__(self):
        return iter(())


def test_a_resumed_run_that_ends_before_its_first_record_names_the_step_where_it_is(capsys):
    assert asyncio.run(live.watch(EndsAtOnce(start_step=20))).stopped
    assert capsys.readouterr().out == "Stopped after step 20 of 120.\n"


class ReadElsewhere(FakeRun):
    """Refuses a second reader, as a training does that a loop is reading."""

    def __iter__(self):
        raise CourseError("Another loop is already reading this run.", allowed="one", cure="wait")


def test_a_run_that_another_loop_reads_is_refused_and_left_to_that_loop(capsys):
    run = ReadElsewhere()
    with pytest.raises(CourseError, match="Another loop"):
        asyncio.run(live.watch(run))
    assert not run.closed
    assert capsys.readouterr().out == ""


def test_an_error_in_training_comes_out_with_its_traceback():
    with pytest.raises(RuntimeError, match="the disk is full") as caught:
        asyncio.run(live.watch(FakeRun(fail_at=50)))
    assert traceback.extract_tb(caught.tb)[-1].filename.endswith("fake_run.py")


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
    assert run.closed
    assert not caught.value.history.stopped  # the reader did not


class ClosesBadly(FakeRun):
    def close(self) -> None:
        super().close()
        raise OSError("no folder")


def test_an_error_at_the_end_of_a_failed_training_does_not_hide_the_first():
    with pytest.raises(RuntimeError, match="the disk is full"):
        asyncio.run(live.watch(ClosesBadly(fail_at=5)))


def test_an_error_at_the_very_end_brings_the_whole_history():
    with pytest.raises(OSError, match="no folder") as caught:
        asyncio.run(live.watch(ClosesBadly()))
    assert caught.value.history == history(120)


def ended(run: FakeRun) -> FakeRun:
    list(run)
    return run


def closed(run: FakeRun) -> FakeRun:
    run.close()
    return run


def watched(run: FakeRun) -> FakeRun:
    asyncio.run(live.watch(run))
    return run


def failed(run: FakeRun) -> FakeRun:
    with pytest.raises(RuntimeError):
        asyncio.run(live.watch(run))
    return run


@pytest.mark.parametrize(
    "over",
    [
        lambda: ended(FakeRun()),
        lambda: closed(FakeRun()),
        lambda: watched(FakeRun()),
        lambda: watched(FakeRun(start_step=120)),
        lambda: failed(FakeRun(fail_at=50)),
    ],
)
def test_a_run_that_is_over_is_refused_with_the_cure(over, language, capsys):
    run = over()
    capsys.readouterr()
    with pytest.raises(CourseError) as caught:
        asyncio.run(live.watch(run))
    assert ("This run is over" in caught.value.problem) is (language == "en")
    assert "train(...)" in caught.value.cure
    assert capsys.readouterr().out == ""


def test_a_second_watch_on_one_run_is_refused_and_the_first_gets_every_step(language):
    async def both():
        run = FakeRun(seconds=0.001)
        return await asyncio.gather(live.watch(run), live.watch(run), return_exceptions=True)

    first, second = asyncio.run(both())
    assert first == history(120)
    assert isinstance(second, CourseError)
    assert ("watched already" in second.problem) is (language == "en")


def test_two_runs_may_be_watched_at_once():
    async def both():
        return await asyncio.gather(live.watch(FakeRun(seconds=0.001)), live.watch(FakeRun(seconds=0.001)))

    assert asyncio.run(both()) == [history(120)] * 2


def test_an_error_in_the_view_ends_training(monkeypatch):
    def broken(self: TerminalView) -> None:
        raise OSError("no terminal")

    monkeypatch.setattr(TerminalView, "refresh", broken)
    run = FakeRun(epochs=1000, seconds=0.001)
    with pytest.raises(OSError, match="no terminal"):
        asyncio.run(live.watch(run))
    assert run.closed_after < run.total_steps


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


@pytest.fixture(scope="module")
def executed():
    cells = (FIRST, "run = FakeRun(seconds=0.005)\nhistory = await live.watch(run)", LAST)
    return [normalised(execute(notebook_of(*cells))) for _time in range(2)]


def outputs(notebook, cell=1):
    return notebook.cells[cell].outputs


def test_in_a_notebook_it_leaves_the_last_picture_its_words_and_a_note(executed):
    controls, picture = outputs(executed[0])
    assert controls.data["text/plain"] == (
        "While this cell runs, a progress bar and a Stop button appear here."
    )
    assert controls.data["text/plain"] in controls.data["text/html"]
    assert picture.data["text/plain"] == "Picture: loss and accuracy, step by step."
    assert picture.metadata["image/png"]["alt"].startswith("Curves of loss and accuracy, at step 120: train")
    assert outputs(executed[0], 2)[0].text == "120 120 False\n"


def test_the_picture_is_drawn_from_the_final_numbers(executed):
    panels = Panels([""], 120, 20)
    panels.show([curves(history(120))])
    stored = outputs(executed[0])[1].data["image/png"]
    assert base64.b64decode(stored) == panels.png()


def test_executing_again_changes_no_byte(executed):
    first, second = (nbformat.from_dict(notebook) for notebook in executed)
    for one, other in zip(first.cells, second.cells, strict=True):
        other.id = one.id  # a lesson's cells have names; these have not
    assert nbformat.writes(first) == nbformat.writes(second)


def test_the_stored_widgets_say_that_it_is_over_and_hold_no_time(executed):
    models = executed[0].metadata.widgets[WIDGET_STATE].state.values()
    states = {model.model_name: model.state for model in models}
    assert states["ButtonModel"].disabled
    assert states["IntProgressModel"].value == states["IntProgressModel"].max == 120
    assert states["HTMLModel"].value == "step 120 / 120, epoch 3 / 3"


def test_strict_nbval_passes_and_notices_another_result(executed, tmp_path):
    changed, path = nbformat.from_dict(executed[0]), tmp_path / "changed.ipynb"
    changed.cells.append(copy.deepcopy(changed.cells[2]))
    changed.cells[3].id = "changed"
    changed.cells[3].outputs[0].text = "121 120 False\n"
    nbformat.write(changed, path)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-cell-timeout=120", "-q", path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "FAILED changed.ipynb::Cell 3" in done.stdout


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


def test_in_a_notebook_an_error_in_training_ends_the_cell_with_its_traceback():
    cells = (FIRST, "run = FakeRun(fail_at=50)\nhistory = await live.watch(run)", LAST)
    notebook = execute(notebook_of(*cells))
    *shown, error = outputs(notebook)
    assert (error.ename, error.evalue) == ("RuntimeError", "the disk is full")
    assert "fake_run.py" in "".join(error.traceback)
    assert "at step 49: " in shown[1].metadata["image/png"]["alt"]
    assert not outputs(notebook, 2)


def test_in_a_notebook_the_cell_below_an_error_gets_the_records_as_its_note_says():
    failing = "run = FakeRun(fail_at=50)\nhistory = await live.watch(run)"
    notebook = notebook_of(FIRST, failing, "import sys; history = sys.last_value.history", LAST)
    notebook.cells[1].metadata.tags = ["raises-exception"]
    executed = execute(notebook)
    assert outputs(executed, 3)[0].text == "49 49 False\n"


def test_a_real_training_that_is_stopped_goes_on_where_it_was_and_ends_with_the_same_weights(tmp_path):
    from course_lib.data.examples import Examples
    from course_lib.models import sentiment as models
    from course_lib.training import run as training
    from course_lib.training.checkpoints import CheckpointFolder

    random = np.random.default_rng(0)
    features = random.standard_normal((1600, 24), dtype=np.float32)
    examples = Examples(features, (features.sum(axis=1) > 0).astype(np.int64))
    values = models.initial_values(dims=(24, 16, 2))

    def new_run(checkpoints=None):
        model = models.MLP(values)
        return model, training.train(model, examples, examples, epochs=3, checkpoints=checkpoints)

    undisturbed, run = new_run()
    whole = asyncio.run(live.watch(run))
    _first, run = new_run(CheckpointFolder(tmp_path))
    stop, first_part = threading.Event(), History()
    stop.set()
    live.collect(run, iter(run), first_part, stop)
    assert [record.step for record in first_part.steps] == [1]
    resumed, run = new_run(CheckpointFolder(tmp_path))
    assert run.start_step == 1
    both_parts = asyncio.run(live.watch(run, history=first_part))
    measured = [
        [(record.step, record.loss, record.accuracy) for record in seen.steps] for seen in (whole, both_parts)
    ]
    assert measured[0] == measured[1]
    for name, value in undisturbed.values().items():
        np.testing.assert_array_equal(value, resumed.values()[name], err_msg=name)
