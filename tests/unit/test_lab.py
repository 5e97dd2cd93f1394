"""The training lab with a training that trains nothing: choices, refusals, runs, Stop, two labs, pages."""

import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib import CourseError, runtime
from course_lib.models.variables import RANDOM, ModelSpec, VariableSpec
from course_lib.pictures.curves import Curve
from course_lib.pictures.overlay import STYLES, Overlaid, overlay_drawing
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.records import History
from course_lib.training.saved import FACTS
from course_lib.turns import Turns
from course_lib.watch import trains_now
from lessons.lesson_05_model_and_spatial.lab import TrainingLab
from lessons.lesson_05_model_and_spatial.lab_costs import Held, held
from lessons.lesson_05_model_and_spatial.lab_plan import described
from lessons.lesson_05_model_and_spatial.lab_runs import Difference, LabRun, Status, largest_differences
from lessons.lesson_05_model_and_spatial.lab_setting import Setting, Subject
from tests.fake_run import FakeRun, history, step_record

SPEC = ModelSpec(
    {
        "hidden_weight": VariableSpec(("features", "hidden"), RANDOM),
        "hidden_bias": VariableSpec(("hidden",)),
        "logits_weight": VariableSpec(("hidden", "classes"), RANDOM),
        "logits_bias": VariableSpec(("classes",)),
        "moving_mean": VariableSpec(("hidden",), trainable=False),
    },
    inputs=("batch", "features"),
    outputs=("batch", "classes"),
    layers=("features", "hidden", "classes"),
    normalised=("hidden",),
)
SIZES = {"features": 1200, "hidden": 48, "classes": 2}
SUBJECT = Subject(SPEC, SIZES, 2560)


@pytest.fixture(autouse=True)
def eight_devices(monkeypatch):
    """As if `setup(devices=8)` had been called; it refuses where TensorFlow runs with others already."""
    monkeypatch.setitem(runtime._asked, "for", runtime._Request(devices=8))
    yield
    trains_now.stop_lab()


@pytest.fixture
def make(tmp_path):
    """Makes labs whose runs take no time unless told otherwise, and waits for them at the end."""
    labs = []

    def new(**options):
        values = SPEC.initial_values(SIZES, 0, "he")
        options = {"begin": lambda _setting, _folder: FakeRun(), "folder": tmp_path, **options}
        examples = np.zeros((2560, 1200), np.float32), np.zeros(2560, np.int64)
        labs.append(TrainingLab(SimpleNamespace(spec=SPEC), values, examples, **options))
        return labs[-1]

    yield new
    for lab in labs:
        trains_now.stop_lab()
        lab.wait(10)
        lab.close()


def choose(lab, *path_and_value):
    *path, value = path_and_value
    lab._answer(lab, {"kind": "change", "path": path, "value": value}, [])


def press(lab, name):
    lab._answer(lab, {"kind": "press", "name": name}, [])


def run(lab):
    press(lab, "run")
    lab.wait(10)
    return lab.runs[-1]


def text_of(tree):
    return tree if isinstance(tree, str) else " ".join(map(text_of, tree[2:]))


def pieces(tree, tag):
    if isinstance(tree, list):
        if tree[0] == tag:
            yield tree
        for child in tree[2:]:
            yield from pieces(child, tag)


def button(view, name):
    (found,) = [each for each in pieces(view, "button") if each[1].get("value") == name]
    return found[1]


def saved(folder, step, epoch, **settings):
    """Writes a checkpoint without variables."""
    path = folder / f"checkpoint-{epoch + 1:06d}-step-{step:06d}"
    path.mkdir(parents=True)
    settings = {"batch_size": 64, "learning_rate": 0.01, **settings}
    facts = {"settings": settings, "progress": {"step": step, "epoch": epoch}}
    (path / FACTS).write_text(json.dumps(facts))
    return path


class TestPlan:
    @pytest.mark.parametrize(
        ("scheme", "plan"),
        [
            ("one device", None),
            ("data", data_parallel(8)),
            ("model", model_parallel(4, 2)),
            ("spatial", spatial_parallel(2, 2, 2)),
        ],
    )
    def test_a_scheme_is_the_plan_of_the_lessons(self, make, scheme, plan):
        lab = make()
        choose(lab, "scheme", scheme)
        assert lab.setting.plan == plan
        assert make(scheme=scheme).setting.plan == plan

    def test_other_sizes_of_a_scheme_are_the_same_scheme(self, make):
        lab = make(scheme="model")
        choose(lab, "mesh", 0, 1, 2)
        choose(lab, "mesh", 1, 1, 4)
        assert lab.setting.plan == model_parallel(2, 4)

    def test_another_split_makes_it_the_readers_own_plan(self, make):
        lab = make(scheme="model")
        choose(lab, "splits", "features", "model")
        choose(lab, "splits", "hidden", "unsharded")
        plan = lab.setting.plan
        assert lab.state["scheme"] == "own"
        assert dict(plan.splits) == {"batch": "batch", "features": "model"}
        assert plan.mesh == model_parallel(4, 2).mesh
        assert described(plan) == "batch → batch, features → model on batch 4 × model 2"

    def test_a_dimension_that_goes_takes_its_split_along_and_a_new_one_splits_nothing(self, make):
        lab = make(scheme="spatial")
        choose(lab, "num_dims", 1)
        assert lab.state["mesh"] == [["batch", 2]]
        assert lab.state["splits"] == {
            "batch": "batch",
            "features": "unsharded",
            "hidden": "unsharded",
            "classes": "unsharded",
        }
        choose(lab, "num_dims", 3)
        assert [name for name, _size in lab.state["mesh"]] == ["batch", "model", "feature"]
        assert lab.setting.plan.mesh.size == 2

    def test_choosing_a_scheme_again_brings_its_mesh_back(self, make):
        lab = make()
        choose(lab, "mesh", 0, 1, 4)
        choose(lab, "splits", "hidden", "batch")
        choose(lab, "scheme", "data")
        assert lab.setting.plan == data_parallel(8)

    def test_from_one_device_the_reader_comes_back_to_a_mesh(self, make):
        lab = make(scheme="one device")
        choose(lab, "scheme", "own")
        assert lab.setting.plan.mesh == data_parallel(8).mesh


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ([("mesh", 0, 1, 16)], "16 devices"),
        ([("mesh", 0, 1, 0)], "size 0"),
        ([("mesh", 0, 1, None)], "None"),
        ([("mesh", 0, 1, 3)], "does not divide among the 3 places"),
        ([("splits", "features", "batch")], "would split two axes"),
        ([("batch_size", 12)], "does not divide among the 8 places"),
        ([("batch_size", 0)], "cannot be the size of a batch"),
        ([("batch_size", 2568)], "do not fill one batch"),
        ([("learning_rate", 0)], "cannot be a learning rate"),
        ([("learning_rate", None)], "cannot be a learning rate"),
        ([("learning_rate", -1e-3)], "cannot be a learning rate"),
        ([("epochs", 0)], "epochs cannot be trained"),
        ([("epochs", 1.5)], "epochs cannot be trained"),
        ([("scheme", "model"), ("mesh", 1, 1, 5), ("mesh", 0, 1, 1)], "5"),
    ],
)
def test_an_illegal_choice_is_refused_in_words_and_cannot_be_run(make, choices, told):
    lab = make()
    for choice in choices:
        choose(lab, *choice)
    assert told in text_of(lab.view)
    assert "disabled" in button(lab.view, "run")
    with pytest.raises(CourseError):
        lab.run_choice()
    press(lab, "run")
    assert lab.runs == ()
    assert not trains_now.anything()
    choose(lab, "scheme", "one device")
    for name, value in (("batch_size", 64), ("learning_rate", 0.01), ("epochs", 3)):
        choose(lab, name, value)
    assert "disabled" not in button(lab.view, "run")


def test_it_cannot_be_made_with_values_of_another_model_or_an_unknown_scheme(make):
    with pytest.raises(CourseError, match="scheme"):
        make(scheme="pipeline")
    for checkpoints in (SimpleNamespace(path="folder"), {"lesson 4": 4}):
        with pytest.raises(CourseError, match="cannot take its checkpoints"):
            make(checkpoints=checkpoints)
    with pytest.raises(CourseError, match="hidden_weight"):
        TrainingLab(SimpleNamespace(spec=SPEC), {}, (np.zeros((1, 2)), np.zeros(1)))


class TestRuns:
    def test_a_run_collects_its_records_and_says_how_it_ended(self, make):
        lab = make()
        found = run(lab)
        assert (found.number, found.status, found.step) == (1, Status.FINISHED, 120)
        assert found.history == history(120)
        assert "1 · data parallel on batch 8 · batch 64, learning rate 0.01" in text_of(lab.view)
        assert "finished after step 120" in text_of(lab.view)
        assert not trains_now.anything()

    def test_runs_lie_over_each_other_each_with_a_colour_and_dashes_of_its_own(self, make):
        lab = make()
        run(lab)
        choose(lab, "scheme", "one device")
        run(lab)
        assert [each.number for each in lab.runs] == [1, 2]
        (curves, _accuracy) = [
            each for each in pieces(lab.view, "svg") if any(True for _c in pieces(each, "circle"))
        ]
        lines = [each[1] for each in pieces(curves, "path") if each[1].get("stroke-width") == "2"]
        assert [(line["stroke"], line.get("stroke-dasharray", "")) for line in lines] == list(STYLES[:2])
        assert "Largest difference in loss at the same step: 0." in text_of(lab.view)

    def test_more_runs_than_colours_leave_the_newest_in_the_picture(self, make):
        lab = make(begin=lambda _setting, _folder: FakeRun(epochs=1, steps_per_epoch=2))
        for _run in range(len(STYLES) + 2):
            run(lab)
        assert len(lab.runs) == 8
        told = text_of(lab.view)
        assert "2 · data" not in told
        assert all(f"{number} · data" in told for number in range(3, 9))

    def test_it_is_responsive_while_a_run_trains_and_stop_ends_it(self, make):
        lab = make(begin=lambda _setting, _folder: FakeRun(epochs=1000, seconds=0.001))
        press(lab, "run")
        wait_for(lambda: lab.runs[0].step > 3)
        assert lab.runs[0].status is Status.TRAINING
        assert "aria-disabled" not in button(lab.view, "stop")
        choose(lab, "scheme", "spatial")
        assert lab.setting.plan == spatial_parallel()
        press(lab, "stop")
        assert "stopping" in text_of(lab.view) or lab.runs[0].status is Status.STOPPED
        lab.wait(10)
        stopped = lab.runs[0]
        assert stopped.status is Status.STOPPED
        assert f"stopped after step {stopped.step} of 40000" in text_of(lab.view)
        assert "aria-disabled" in button(lab.view, "stop")
        assert run_again(lab).number == 2

    def test_a_second_press_begins_no_second_run(self, make):
        lab = make(begin=lambda _setting, _folder: FakeRun(epochs=1000, seconds=0.001))
        press(lab, "run")
        press(lab, "run")
        assert len(lab.runs) == 1
        assert "Another training runs" in text_of(lab.view)

    def test_another_lab_says_that_one_trains_and_can_stop_it(self, make):
        first = make(begin=lambda _setting, _folder: FakeRun(epochs=1000, seconds=0.001))
        second = make()
        press(first, "run")
        press(second, "run")
        assert second.runs == ()
        assert "Another training runs" in text_of(second.view)
        press(second, "stop")
        first.wait(10)
        assert first.runs[0].status is Status.STOPPED
        assert run(second).status is Status.FINISHED

    def test_nothing_is_trained_while_a_cell_watches_a_run(self, make):
        lab = make()
        with trains_now.watching(object()):
            press(lab, "run")
            assert lab.runs == ()
            assert "Another training runs" in text_of(lab.view)
        press(lab, "run")
        lab.wait(10)
        assert "Another training runs" not in text_of(lab.view)

    def test_no_cell_watches_a_run_while_a_lab_trains(self, make):
        lab = make(begin=lambda _setting, _folder: FakeRun(epochs=1000, seconds=0.001))
        press(lab, "run")
        with pytest.raises(CourseError, match="Another training"), trains_now.watching(object()):
            pass

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (CourseError("The disk is full.", allowed="room", cure="delete"), "The disk is full."),
            (ValueError("odd"), "ValueError: odd"),
        ],
    )
    def test_an_error_appears_in_the_lab_and_nowhere_else(self, make, capfd, error, told):
        def fail(_setting, _folder):
            raise error

        lab = make(begin=fail)
        assert run(lab).status is Status.FAILED
        assert told in text_of(lab.view)
        assert not trains_now.anything()
        assert capfd.readouterr() == ("", "")

    def test_an_error_within_training_leaves_the_records_so_far(self, make, capfd):
        lab = make(begin=lambda _setting, _folder: FakeRun(fail_at=50))
        failed = run(lab)
        assert failed.history.steps == history(49).steps
        assert "failed after step 49" in text_of(lab.view)
        assert "RuntimeError: the disk is full" in text_of(lab.view)
        assert capfd.readouterr() == ("", "")

    def test_a_folder_that_cannot_be_made_is_said(self, make, tmp_path):
        (tmp_path / "file").write_text("")
        lab = make(folder=tmp_path / "file" / "labs")
        press(lab, "run")
        assert "No folder can be made" in text_of(lab.view)
        assert not trains_now.anything()


def run_again(lab):
    press(lab, "run")
    press(lab, "stop")
    lab.wait(10)
    return lab.runs[-1]


def wait_for(condition):
    for _try in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never came")


class TestStarts:
    def test_a_checkpoint_gives_its_numbers_and_the_plan_stays_free(self, make, tmp_path):
        saved(tmp_path / "run-007", 126, 1, batch_size=32, learning_rate=0.02)
        lab = make()
        choose(lab, "start", "run-007/checkpoint-000002-step-000126")
        choose(lab, "scheme", "spatial")
        setting = lab.setting
        assert (setting.batch_size, setting.learning_rate, setting.epochs) == (32, 0.02, 3)
        assert (setting.start.saved.step, setting.plan) == (126, spatial_parallel())
        assert str(setting.start) == "run 7, step 126"
        assert run(lab).number == 8  # the runs of an earlier session are counted
        choose(lab, "start", "")
        assert lab.setting.start is None

    def test_the_batch_of_a_checkpoint_must_divide_too(self, make, tmp_path):
        saved(tmp_path / "run-001", 126, 1, batch_size=12)
        lab = make()
        choose(lab, "start", "run-001/checkpoint-000002-step-000126")
        assert "A batch of 12 does not divide among the 8 places" in text_of(lab.view)

    def test_a_training_that_is_done_needs_more_epochs(self, make, tmp_path):
        saved(tmp_path / "run-001", 378, 3)
        lab = make()
        choose(lab, "start", "run-001/checkpoint-000004-step-000378")
        assert "Ask for more epochs than 3" in text_of(lab.view)
        choose(lab, "epochs", 4)
        assert lab.setting.epochs == 4

    def test_a_checkpoint_of_another_training_is_offered_by_its_name(self, make, tmp_path):
        folder = tmp_path / "lesson"
        saved(folder, 126, 1)
        for given in (folder, str(folder), SimpleNamespace(path=folder)):
            lab = make(checkpoints={"lesson 4": given})
            assert "lesson 4, step 126" in text_of(lab.view)

    def test_a_checkpoint_that_goes_is_refused(self, make, tmp_path):
        path = saved(tmp_path / "run-001", 126, 1)
        lab = make()
        choose(lab, "start", f"run-001/{path.name}")
        path.rename(tmp_path / "elsewhere")
        press(lab, "run")
        assert lab.runs == ()
        assert "is gone" in text_of(lab.view)


class TestDifferences:
    def runs(self, *settings_and_records):
        return [
            LabRun(number, setting, History(records))
            for number, (setting, records) in enumerate(settings_and_records, start=1)
        ]

    def test_the_largest_is_over_pairs_and_steps_that_both_did(self):
        whole, rest = history(40).steps, history(40).steps[20:]
        moved = [step_record(step) for step in range(1, 41)]
        moved[29] = type(moved[29])(**{**vars(moved[29]), "loss": moved[29].loss + 0.25})
        found = largest_differences(
            self.runs((Setting(None), whole), (Setting(data_parallel(8)), rest), (Setting(None), moved))
        )
        assert found[0] == Difference("loss", pytest.approx(0.25), 30, (1, 3))
        assert found[1].value == 0

    @pytest.mark.parametrize("other", [Setting(None, batch_size=32), Setting(None, learning_rate=0.02)])
    def test_runs_whose_steps_differ_are_not_compared(self, other):
        steps = history(40).steps
        assert largest_differences(self.runs((Setting(None), steps), (other, steps))) == []

    def test_runs_without_a_common_step_are_not_compared(self):
        steps = history(40).steps
        assert largest_differences(self.runs((Setting(None), steps[:20]), (Setting(None), steps[20:]))) == []


class TestCosts:
    def test_the_bytes_on_a_device_are_those_of_its_shards(self):
        weights, biases, moment = 1200 * 48 + 48 * 2, 48 + 2, 48
        alone = held(SUBJECT, None, 64)
        trained = 4 * (weights + biases)
        assert alone == Held(trained + 4 * moment, trained, 0, 64 * (4 * 1200 + 8))
        assert held(SUBJECT, data_parallel(8), 64) == Held(
            trained + 4 * moment, trained, 0, 8 * (4 * 1200 + 8)
        )
        half = 4 * ((1200 * 48 + 48 * 2 + 48) // 2 + 2)
        assert held(SUBJECT, model_parallel(4, 2), 64) == Held(half + 4 * 24, half, 0, 16 * (4 * 1200 + 8))
        quarter = 4 * (600 * 24 + 24 + 24 * 2 + 2)
        assert held(SUBJECT, spatial_parallel(2, 2, 2), 64) == Held(
            quarter + 4 * 24, quarter, 0, 32 * (4 * 600 + 8)
        )

    def test_what_is_drawn_is_what_is_held(self, make):
        told = text_of(make(scheme="spatial").view)
        assert f"{4 * (600 * 24 + 24 + 24 * 2 + 2) + 96:,}" in told

    @pytest.mark.parametrize(
        ("scheme", "told"),
        [
            ("one device", "0 bytes in 0 collectives"),
            # 2 (n - 1) / n of the payloads of tests/tf/test_step_communication.py, and 1 for the all-gather.
            (
                "data",
                f"{(2 * 7 * (384 + 384 + 8 + 230400 + 192 + 8) + 7 * 3072) // 8:,} bytes in 8 collectives",
            ),
            (
                "model",
                f"{(2 * 3 * (192 + 192 + 8 + 115200 + 96 + 8) + 3 * 768) // 4 + 128:,} bytes in 9 coll",
            ),
        ],
    )
    def test_the_bytes_sent_are_those_of_rings(self, make, scheme, told):
        assert told in text_of(make(scheme=scheme).view)


class TestPages:
    def test_what_a_notebook_stores_is_the_same_after_training(self, make):
        lab = make()
        before = lab._repr_mimebundle_()[0]
        run(lab)
        after = lab._repr_mimebundle_()[0]
        assert after["text/plain"] == before["text/plain"] == repr(lab)
        assert after["text/html"] == before["text/html"]
        assert not any(character.isdigit() for character in repr(lab))

    def test_a_page_shows_each_scheme_with_its_code_and_needs_a_notebook_for_the_button(self, make):
        lab = make()
        table = lab.for_a_page()["table"]
        assert len(table["keys"]) == 4
        shown = json.dumps(table)
        for told in ("PartitionSpec", "init_device_mesh", "dtensor.Layout", "needs a running notebook"):
            assert told in shown

    def test_recorded_runs_are_the_first_picture_also_on_a_page(self, make):
        recorded = [(Setting(None), history(80)), (Setting(data_parallel(8)), history(80))]
        lab = make(recorded=recorded)
        assert [each.status for each in lab.runs] == [Status.RECORDED] * 2
        assert lab.still().count("<circle") == 2 * 2 * 2  # loss and accuracy of two runs after two epochs
        assert make().still().count("<circle") == 0
        assert repr(lab) == repr(make())
        page = json.dumps(lab.for_a_page()["table"])
        assert "recorded earlier" in page
        assert "Largest difference in loss at the same step: 0." in page
        assert " ms a step" not in text_of(lab.view)
        assert run(lab).number == 3


class TestTurns:
    def test_a_training_waits_for_all_others_that_wait_too(self):
        turns, order, both = Turns(), [], threading.Barrier(2)

        def train():
            with turns.of_training():
                order.append("training")

        def other():
            with turns.turn():
                both.wait(10)  # others do not wait for each other
                order.append("other")

        with turns.of_training():
            threads = [threading.Thread(target=each) for each in (train, other, other)]
            for thread in threads:
                thread.start()
            wait_for(lambda: turns._waiting == 2)
            assert order == []
        for thread in threads:
            thread.join(10)
        assert order == ["other", "other", "training"]

    def test_a_cell_that_waits_for_a_training_lets_it_go_on_and_keeps_it_away_afterwards(self):
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
        assert turns._others == 0

    def test_a_cell_that_waits_without_having_taken_a_turn_takes_none(self):
        turns = Turns()
        with turns.left():
            pass
        turns.give_back()
        assert turns._others == 0
        with turns.of_training():
            pass


def test_an_overlay_thins_long_curves_and_keeps_the_last_point():
    steps = tuple(range(1, 1001))
    curve = Curve("loss", "train", steps, tuple(1 / step for step in steps))
    drawing = overlay_drawing([Overlaid(0, (curve,))], "loss", 1000, "step")
    (line,) = [
        dict(each.attributes)["d"] for each in drawing.nodes if "stroke-linejoin" in dict(each.attributes)
    ]
    points = line[1:].split("L")
    assert len(points) < 170
    assert points[-1].split()[0] == "340"


def test_a_plan_of_the_readers_own_that_splits_nothing_is_called_so():
    plan = Plan("own", data_parallel(8).mesh, {})
    assert described(plan) == "all unsharded on batch 8"
