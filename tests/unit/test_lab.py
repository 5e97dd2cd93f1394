"""The training lab with a training that trains nothing: choices, refusals, runs, Stop, pages."""

import asyncio
import json

import pytest

from course_lib import MeshSpec, runtime
from course_lib.specs.plan import Plan
from course_lib.watch.records import History
from tests.course import from_lesson
from tests.explored import choose, nodes, press, text_of
from tests.records import step_record, training

lab_module = from_lesson("any_mesh", "lab")
TrainingLab = lab_module.TrainingLab
LabRun, largest_differences = from_lesson("any_mesh.lab_runs", "LabRun", "largest_differences")
Setting, described = from_lesson("any_mesh.lab_setting", "Setting", "described")

AXES = {"W1": ("features", "hidden"), "b1": ("hidden",), "W2": ("hidden", "classes"), "b2": ("classes",)}
AXES |= {"x": ("batch", "features"), "y": ("batch",)}
SPLITS = {"batch": "batch", "features": "feature", "hidden": "model"}
MESHES = {"data": [("batch", 8)], "model": [("batch", 4), ("model", 2)]}
MESHES |= {"spatial": [("batch", 2), ("feature", 2), ("model", 2)]}
SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
EXAMPLES = 2560  # 40 steps an epoch

pytestmark = pytest.mark.usefixtures("eight_devices")


@pytest.fixture
def eight_devices(monkeypatch, tmp_path):
    """As if `setup(devices=8)` had been called; layouts are what the lab would make with TensorFlow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime._request, "devices", 8)
    monkeypatch.setattr(lab_module, "_layouts", lambda setting, subject: setting.plan)


def make(train=None):
    """Makes a lab, by default one whose runs are over at once."""

    def trains(layouts, folder, steps, batch_size, learning_rate):
        (lab_module.Path(folder)).mkdir(exist_ok=True)
        yield from (record for record in training(steps) if "loss" in record)

    subject = {"meshes": MESHES, "splits": SPLITS, "axes": AXES, "sizes": SIZES}
    return TrainingLab(train or trains, "kept", num_examples=EXAMPLES, **subject)


def run(lab, *presses):
    """Presses Run, and other buttons once the run trains; returns the run when it has ended."""

    async def follow():
        press(lab, "run")
        for name in presses:
            await asyncio.sleep(0)
            press(lab, name)
        await lab.task

    asyncio.run(follow())
    return lab.runs[-1]


def button(view, name):
    (found,) = [each[1] for each in nodes(view) if each[0] == "button" and each[1].get("value") == name]
    return found


# --- The choice


@pytest.mark.parametrize(
    ("choices", "described_as"),
    [
        ([], "data parallel on batch 8"),
        ([("scheme", "one device")], "one device"),
        ([("scheme", "spatial")], "spatial parallel on batch 2 × feature 2 × model 2"),
        ([("scheme", "model"), ("mesh", 0, 1, 2), ("mesh", 1, 1, 4)], "model parallel on batch 2 × model 4"),
        (
            [("scheme", "model"), ("splits", "features", "model"), ("splits", "hidden", "unsharded")],
            "batch → batch, features → model on batch 4 × model 2",
        ),
        ([("mesh", 0, 1, 4), ("splits", "hidden", "batch"), ("scheme", "data")], "data parallel on batch 8"),
    ],
)
def test_a_scheme_is_that_of_the_lesson_until_its_mesh_or_splits_are_others(choices, described_as):
    lab = make()
    for choice in choices:
        choose(lab, *choice)
    assert described(lab.setting.plan) == described_as


def test_a_dimension_that_goes_takes_its_split_along_and_a_new_one_splits_nothing():
    lab = make()
    choose(lab, "scheme", "spatial")
    choose(lab, "num_dims", 1)
    assert lab.state["mesh"] == [["batch", 2]]
    assert lab.state["splits"] == {"batch": "batch", "features": "unsharded", "hidden": "unsharded"}
    choose(lab, "num_dims", 3)
    assert [name for name, _size in lab.state["mesh"]] == ["batch", "model", "feature"]
    assert described(lab.setting.plan) == "batch → batch on batch 2 × model 1 × feature 1"


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ([("mesh", 0, 1, 16)], "16 devices"),
        ([("mesh", 0, 1, None)], "None"),
        ([("mesh", 0, 1, 3)], "does not split in 3 parts"),
        ([("splits", "features", "batch")], "would split two axes"),
        ([("batch_size", 12)], "does not split in 8 parts"),
        ([("batch_size", 2568)], "whole numbers from 1 to 2560"),
        ([("learning_rate", None)], "cannot be a learning rate"),
        ([("epochs", 0)], "epochs cannot be trained"),
        ([("scheme", "model"), ("mesh", 1, 1, 5), ("mesh", 0, 1, 1)], "5"),
    ],
)
def test_an_illegal_choice_is_refused_in_words_and_cannot_be_run(choices, told):
    lab = make()
    for choice in choices:
        choose(lab, *choice)
    assert told in text_of(lab.view)
    assert "disabled" in button(lab.view, "run")
    press(lab, "run")
    assert lab.runs == []
    for name, value in (("scheme", "one device"), ("batch_size", 64), ("learning_rate", 0.01), ("epochs", 3)):
        choose(lab, name, value)
    assert "disabled" not in button(lab.view, "run")


# --- Runs


def test_a_run_trains_as_it_was_asked_to_and_says_how_it_ended():
    asked = []

    def train(*arguments):
        asked.append(arguments)
        yield from map(step_record, range(1, arguments[2] + 1))

    lab = make(train)
    choose(lab, "scheme", "model")
    choose(lab, "batch_size", 128)
    choose(lab, "learning_rate", 0.02)
    found = run(lab)
    assert asked == [(lab.setting.plan, str(found.folder), 60, 128, 0.02)]
    assert (found.number, found.status, found.step) == (1, "finished", 60)
    assert found.history.steps == [step_record(step) for step in range(1, 61)]
    told = text_of(lab.view, " ")
    assert "run 1 model parallel on batch 4 × model 2 · batch 128, learning rate 0.02" in told
    assert "finished after step 60" in told


def test_runs_lie_over_each_other_in_one_picture_that_is_told_in_words():
    lab = make()
    for scheme in ("data", "one device"):
        choose(lab, "scheme", scheme)
        run(lab)
    (picture,) = [each[1] for each in nodes(lab.view) if each[0] == "img"]
    assert picture["src"].startswith("data:image/png;base64,")
    assert picture["alt"].count("at step 120: train loss") == 2
    assert "Largest difference in loss at the same step: 0." in text_of(lab.view)


def test_a_lab_whose_cell_runs_again_ends_the_run_of_the_one_before():
    closed = []
    lab = make(lambda _layouts, _folder, steps, *_numbers: training(steps, saved=closed))

    async def follow():
        press(lab, "run")
        await asyncio.sleep(0)
        make()
        assert closed == [lab.runs[0].step]
        await lab.task

    asyncio.run(follow())
    assert lab.runs[0].status == "stopped"


def test_a_folder_that_cannot_be_written_is_said_in_the_lab():
    lab_module.Path("kept").touch()
    lab = make()
    press(lab, "run")
    assert "kept" in lab._said
    assert lab.runs == []


def test_a_second_run_waits_for_the_first():
    lab = make()
    run(lab, "run")
    assert "Another training runs in this lab." in str(lab._said)
    assert len(lab.runs) == 1


def test_an_error_appears_in_the_lab_and_nowhere_else(capfd):
    lab = make(lambda *_arguments: training(fail_at=30))
    found = run(lab)
    assert (found.status, found.step) == ("failed", 29)
    assert "failed after step 29" in text_of(lab.view)
    assert "RuntimeError: the disk is full" in text_of(lab.view)
    assert capfd.readouterr() == ("", "")


# --- Where a run starts


def test_a_run_goes_on_in_a_copy_of_the_folder_with_its_numbers_and_under_any_plan():
    steps, copied = [], []

    def train(layouts, folder, count, *numbers):
        place = lab_module.Path(folder)
        copied.append((place / "checkpoint").exists())
        place.mkdir(exist_ok=True)
        (place / "checkpoint").touch()
        begin = 40 if copied[-1] else 0
        steps.append(count)
        yield from map(step_record, range(begin + 1, begin + count + 1))

    lab = make(train)
    for name, value in (("batch_size", 32), ("learning_rate", 0.02), ("epochs", 1)):
        choose(lab, name, value)
    run(lab)
    choose(lab, "batch_size", 64)
    choose(lab, "start", "1")
    choose(lab, "scheme", "spatial")
    assert "whole numbers from 2" in text_of(lab.view)
    choose(lab, "epochs", 2)
    assert "run 1, step 80" in text_of(lab.view)
    setting = lab.setting
    assert (setting.batch_size, setting.learning_rate, setting.epochs) == (32, 0.02, 2)
    assert described(setting.plan).startswith("spatial")
    run(lab)
    assert (steps, copied) == ([80, 80], [False, True])
    choose(lab, "start", "")
    assert lab.setting.start is None


# --- What is compared and counted


def test_the_largest_difference_is_over_pairs_and_steps_that_both_did_alike(tmp_path):
    moved = [step_record(step) for step in range(1, 41)]
    moved[29] = {**moved[29], "loss": moved[29]["loss"] + 0.25}
    plan = Plan("any", MeshSpec([("x", 2)]), {})
    runs = [
        LabRun(number, setting, tmp_path, 80, History(steps))
        for number, (setting, steps) in enumerate(
            [
                (Setting(None), [step_record(step) for step in range(1, 29)]),
                (Setting(plan), [step_record(step) for step in range(21, 41)]),
                (Setting(None), moved),
                (Setting(None, learning_rate=0.02), [step_record(step) for step in range(1, 81)]),
            ],
            start=1,
        )
    ]
    loss, accuracy = largest_differences(runs)
    assert loss == (pytest.approx(0.25), "loss", 30, (2, 3))
    assert accuracy[:2] == (0, "accuracy")
    assert largest_differences([runs[0], runs[3]]) == []


def test_a_choice_says_what_each_device_holds_and_sends():
    lab = make()
    choose(lab, "scheme", "model")
    assert f"{4 * ((1200 * 48 + 48 * 2 + 48) // 2 + 2):,}" in text_of(lab.view)
    # 2 (n - 1) / n of the payloads of tests/tf/test_plans.py.
    sent = 2 * 3 * (96 + 4 + 4 + 8 + 192 + 115200) // 4 + 128
    assert f"{sent:,} bytes in 7 collectives" in text_of(lab.view)
    choose(lab, "scheme", "one device")
    assert "0 bytes in 0 collectives" in text_of(lab.view)


# --- What is stored, and pages


def test_what_a_notebook_stores_is_the_same_after_training():
    lab = make()
    before = lab._repr_mimebundle_()[0]
    run(lab)
    after = lab._repr_mimebundle_()[0]
    assert after["text/plain"] == before["text/plain"] == repr(lab)
    assert after["text/html"] == before["text/html"]
    assert not any(character.isdigit() for character in repr(lab))


def test_a_page_shows_each_scheme_with_its_code_and_needs_a_notebook_for_the_button():
    _file, table = next(make().page_tables())
    assert len(table["keys"]) == 4
    shown = json.dumps(table)
    for told in ("PartitionSpec", "init_device_mesh", "dtensor.Layout", "needs a running notebook"):
        assert told in shown
