"""The training lab with a training that trains nothing: choices, refusals, runs, Stop, two labs, pages."""

import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib import CourseError, runtime
from course_lib.data.examples import Examples
from course_lib.models.variables import RANDOM, ModelSpec, VariableSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.records import History
from course_lib.training.saved import FACTS
from course_lib.turns import Turns
from course_lib.watch import trains_now
from tests.course import from_lesson
from tests.explored import choose, nodes, press, text_of
from tests.fake_run import FakeRun, history, step_record

lab_runs = from_lesson("splitting_the_model", "lab_runs")
TrainingLab = from_lesson("splitting_the_model.lab", "TrainingLab")
LabRun, largest_differences = from_lesson("splitting_the_model.lab_runs", "LabRun", "largest_differences")
Setting, described = from_lesson("splitting_the_model.lab_setting", "Setting", "described")
STYLES = from_lesson("splitting_the_model.overlay", "STYLES")

SPEC = ModelSpec(
    {
        "hidden_weight": VariableSpec(("features", "hidden"), RANDOM),
        "hidden_bias": VariableSpec(("hidden",)),
        "logits_weight": VariableSpec(("hidden", "classes"), RANDOM),
        "logits_bias": VariableSpec(("classes",)),
        "moving_mean": VariableSpec(("hidden",), trainable=False),
    },
    inputs=("batch", "features"),
    layers=("features", "hidden", "classes"),
    normalised=("hidden",),
)
SIZES = {"features": 1200, "hidden": 48, "classes": 2}
UNSPLIT = dict.fromkeys(("batch", "features", "hidden", "classes"), "unsharded")


@pytest.fixture(autouse=True)
def eight_devices(monkeypatch):
    """As if `setup(devices=8)` had been called; it refuses where TensorFlow runs with others already."""
    monkeypatch.setitem(runtime._asked, "for", runtime._Request(devices=8))
    yield
    trains_now.stop_lab()


@pytest.fixture
def make(monkeypatch):
    """Makes labs whose runs are those of a function, by default over at once; ends them afterwards."""
    labs = []

    def new(begin=FakeRun):
        monkeypatch.setattr(lab_runs, "begin", lambda _setting, _folder, **_subject: begin())
        values = SPEC.initial_values(SIZES, 0, "he")
        examples = Examples(np.zeros((2560, 1200), np.float32), np.zeros(2560, np.int64))
        labs.append(TrainingLab(SimpleNamespace(spec=SPEC), values, examples))
        return labs[-1]

    yield new
    for lab in labs:
        trains_now.stop_lab()
        lab.wait(10)
        lab.close()


def long_run():
    return FakeRun(epochs=1000, seconds=0.001)


def run(lab):
    press(lab, "run")
    lab.wait(10)
    return lab.runs[-1]


def button(view, name):
    (found,) = [each[1] for each in nodes(view) if each[0] == "button" and each[1].get("value") == name]
    return found


def saved(run, step, epoch):
    """Writes what lies beside the variables of a checkpoint, as if a run had left it."""
    path = run.folder / f"ckpt-{epoch}"
    run.folder.mkdir(parents=True)
    path.with_suffix(".index").touch()
    path.with_suffix(FACTS).write_text(json.dumps({"step": step, "progress": {"step": step, "epoch": epoch}}))
    return path


# --- The choice


@pytest.mark.parametrize(
    ("choices", "plan"),
    [
        ([], data_parallel(8)),
        ([("scheme", "one device")], None),
        ([("scheme", "spatial")], spatial_parallel(2, 2, 2)),
        ([("scheme", "model"), ("mesh", 0, 1, 2), ("mesh", 1, 1, 4)], model_parallel(2, 4)),
        (
            [("scheme", "model"), ("splits", "features", "model"), ("splits", "hidden", "unsharded")],
            Plan("own", model_parallel(4, 2).mesh, {"batch": "batch", "features": "model"}),
        ),
        ([("mesh", 0, 1, 4), ("splits", "hidden", "batch"), ("scheme", "data")], data_parallel(8)),
    ],
)
def test_a_scheme_is_the_plan_of_the_lessons_until_its_mesh_or_splits_are_others(make, choices, plan):
    lab = make()
    for choice in choices:
        choose(lab, *choice)
    assert lab.setting.plan == plan


def test_a_dimension_that_goes_takes_its_split_along_and_a_new_one_splits_nothing(make):
    lab = make()
    choose(lab, "scheme", "spatial")
    choose(lab, "num_dims", 1)
    assert lab.state["mesh"] == [["batch", 2]]
    assert lab.state["splits"] == {**UNSPLIT, "batch": "batch"}
    choose(lab, "num_dims", 3)
    assert [name for name, _size in lab.state["mesh"]] == ["batch", "model", "feature"]
    assert described(lab.setting.plan) == "batch → batch on batch 2 × model 1 × feature 1"


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ([("mesh", 0, 1, 16)], "16 devices"),
        ([("mesh", 0, 1, None)], "None"),
        ([("mesh", 0, 1, 3)], "does not divide among the 3 places"),
        ([("splits", "features", "batch")], "would split two axes"),
        ([("batch_size", 12)], "does not divide among the 8 places"),
        ([("batch_size", 2568)], "do not fill one batch"),
        ([("learning_rate", None)], "cannot be a learning rate"),
        ([("epochs", 0)], "epochs cannot be trained"),
        ([("scheme", "model"), ("mesh", 1, 1, 5), ("mesh", 0, 1, 1)], "5"),
    ],
)
def test_an_illegal_choice_is_refused_in_words_and_cannot_be_run(make, choices, told):
    lab = make()
    for choice in choices:
        choose(lab, *choice)
    assert told in text_of(lab.view)
    assert "disabled" in button(lab.view, "run")
    press(lab, "run")
    assert lab.runs == ()
    assert not trains_now.anything()
    for name, value in (("scheme", "one device"), ("batch_size", 64), ("learning_rate", 0.01), ("epochs", 3)):
        choose(lab, name, value)
    assert "disabled" not in button(lab.view, "run")


# --- Runs


def test_a_run_collects_its_records_and_says_how_it_ended(make):
    lab = make()
    found = run(lab)
    assert (found.number, found.status, found.step) == (1, "finished", 120)
    assert found.history == history(120)
    assert "1 · data parallel on batch 8 · batch 64, learning rate 0.01" in text_of(lab.view)
    assert "finished after step 120" in text_of(lab.view)
    assert not trains_now.anything()


def test_runs_lie_over_each_other_each_with_a_colour_and_dashes_of_its_own(make):
    lab = make()
    for scheme in ("data", "one device"):
        choose(lab, "scheme", scheme)
        run(lab)
    pictures = [each for each in nodes(lab.view) if each[0] == "svg"]
    curves = next(each for each in pictures if any(node[0] == "circle" for node in nodes(each)))
    lines = [each[1] for each in nodes(curves) if each[0] == "path" and each[1].get("stroke-width") == "2"]
    assert [(line["stroke"], line.get("stroke-dasharray", "")) for line in lines] == list(STYLES[:2])
    assert "Largest difference in loss at the same step: 0." in text_of(lab.view)


def test_one_training_at_a_time_and_the_stop_of_any_lab_ends_it(make):
    first, second = make(), make(long_run)
    press(first, "run")
    for lab in (first, second):
        press(lab, "run")
        assert "Another training runs" in text_of(lab.view)
    assert (len(first.runs), len(second.runs)) == (1, 0)
    with pytest.raises(CourseError, match="Another training"), trains_now.watching(object()):
        pass
    press(second, "stop")
    first.wait(10)
    assert first.runs[0].status == "stopped"
    with trains_now.watching(object()):
        press(second, "run")
        assert second.runs == ()
    press(second, "run")
    assert len(second.runs) == 1
    assert "Another training runs" not in text_of(second.view)


def test_an_error_appears_in_the_lab_and_nowhere_else(make, capfd):
    def refuse():
        raise CourseError("The disk is full.", allowed="room", cure="delete")

    lab = make(refuse)
    assert run(lab).status == "failed"
    assert "The disk is full." in text_of(lab.view)
    lab = make(lambda: FakeRun(fail_at=50))
    assert run(lab).history.steps == history(49).steps
    assert "failed after step 49" in text_of(lab.view)
    assert "RuntimeError: the disk is full" in text_of(lab.view)
    assert not trains_now.anything()
    assert capfd.readouterr() == ("", "")


# --- Where a run starts


def test_a_checkpoint_gives_its_numbers_and_the_plan_stays_free(make):
    lab = make()
    choose(lab, "batch_size", 32)
    choose(lab, "learning_rate", 0.02)
    saved(run(lab), 126, 1)
    choose(lab, "batch_size", 64)
    choose(lab, "start", "run-001/ckpt-1")
    choose(lab, "scheme", "spatial")
    setting = lab.setting
    assert (setting.batch_size, setting.learning_rate, setting.epochs) == (32, 0.02, 3)
    assert (setting.start.saved.step, setting.plan) == (126, spatial_parallel())
    choose(lab, "epochs", 1)
    assert "Ask for more epochs than 1" in text_of(lab.view)
    choose(lab, "epochs", 2)
    assert "run 1, step 126" in text_of(lab.view)
    choose(lab, "start", "")
    assert lab.setting.start is None


def test_a_start_that_its_run_removed_is_no_longer_chosen(make):
    lab = make()
    path = saved(run(lab), 126, 1)
    choose(lab, "start", f"run-001/{path.name}")
    path.with_suffix(".index").unlink()
    lab.show()
    assert lab.state["start"] == ""


# --- What is compared and counted


def test_the_largest_difference_is_over_pairs_and_steps_that_both_did_alike(tmp_path):
    moved = [step_record(step) for step in range(1, 41)]
    moved[29] = type(moved[29])(**{**vars(moved[29]), "loss": moved[29].loss + 0.25})
    runs = [
        LabRun(number, setting, tmp_path, History(steps))
        for number, (setting, steps) in enumerate(
            [
                (Setting(None), history(40).steps[:28]),
                (Setting(data_parallel(8)), history(40).steps[20:]),
                (Setting(None), moved),
                (Setting(None, learning_rate=0.02), history(80).steps),
            ],
            start=1,
        )
    ]
    loss, accuracy = largest_differences(runs)
    assert loss == (pytest.approx(0.25), "loss", 30, (2, 3))
    assert accuracy[:2] == (0, "accuracy")
    assert largest_differences([runs[0], runs[3]]) == []


def test_a_choice_says_what_each_device_holds_and_sends(make):
    lab = make()
    choose(lab, "scheme", "model")
    assert f"{4 * ((1200 * 48 + 48 * 2 + 48) // 2 + 2 + 24):,}" in text_of(lab.view)
    # 2 (n - 1) / n of the payloads of tests/tf/test_step_communication.py, and 1 for the all-gather.
    sent = (2 * 3 * (192 + 192 + 8 + 115200 + 96 + 8) + 3 * 768) // 4 + 128
    assert f"{sent:,} bytes in 9 collectives" in text_of(lab.view)
    choose(lab, "scheme", "one device")
    assert "0 bytes in 0 collectives" in text_of(lab.view)


# --- What is stored, and pages


def test_what_a_notebook_stores_is_the_same_after_training(make):
    lab = make()
    before = lab._repr_mimebundle_()[0]
    run(lab)
    after = lab._repr_mimebundle_()[0]
    assert after["text/plain"] == before["text/plain"] == repr(lab)
    assert after["text/html"] == before["text/html"]
    assert not any(character.isdigit() for character in repr(lab))


def test_a_page_shows_each_scheme_with_its_code_and_needs_a_notebook_for_the_button(make):
    table = make().page_table()
    assert len(table["keys"]) == 4
    shown = json.dumps(table)
    for told in ("PartitionSpec", "init_device_mesh", "dtensor.Layout", "needs a running notebook"):
        assert told in shown


# --- Turns, and the picture


def test_a_cell_that_waits_for_a_training_lets_it_go_on_and_keeps_it_away_afterwards():
    turns, seen = Turns(), []

    def train():
        with turns.of_training():
            seen.append(1)

    training = threading.Thread(target=train)
    with turns.turn():
        training.start()
        with turns.left():
            training.join(10)
        assert seen == [1]
        assert turns._others == 1
    with turns.left():  # a cell that had not taken a turn takes none
        pass
    assert turns._others == 0
