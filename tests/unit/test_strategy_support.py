"""The table of strategies: one outcome of several processes, the oracle, and a record that is whole."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import strategy_table
from benchmarks.cases import ANSWERED, CRASH, ERROR, Outcome
from benchmarks.strategy_table import of_any_run, together
from course_lib import CourseError
from course_lib.i18n import set_language
from course_lib.measured import strategy_support, support
from course_lib.measured.support import Cell, Support, of_finding

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("losses", "cell", "text"),
    [
        ((0.9, 0.6), Cell("asynchronous", losses=(0.9, 0.6)), "asynchronous: the loss falls"),
        ((0.6, 0.9), Cell("different", losses=(0.6, 0.9)), "wrong values, no error"),
        ((0.6, 0.6), Cell("different", losses=(0.6, 0.6)), "wrong values, no error"),
    ],
)
def test_without_an_order_the_loss_is_to_fall(losses, cell, text):
    found = of_finding(distributed=True, losses=list(losses))
    assert found == cell
    assert found.text() == text
    assert of_finding(distributed=False, losses=losses).text() == "not split, no error"
    assert of_finding(distributed=True, losses=(0.6, math.nan)).verdict == "different"


@pytest.mark.parametrize(
    ("difference", "reported", "cell"),
    [
        (1e-7, 1e-6, Cell("equal", 1e-6)),
        (1e-7, 0.09, Cell("misreported", 0.09)),
        (0.5, 0.09, Cell("different", 0.5)),
        (math.nan, 0.0, "different"),
        (0.0, math.nan, "misreported"),
    ],
)
def test_a_wrong_loss_is_told_apart_from_wrong_variables(difference, reported, cell):
    found = of_finding(distributed=True, difference=difference, reported_difference=reported)
    assert cell in (found, found.verdict)


def test_losses_are_recorded_as_they_were(tmp_path, monkeypatch):
    found = Support({}, {"parameter_server": {"fit_tf_keras": Cell("asynchronous", losses=(0.875, 0.5))}})
    support.save(found, "99_test", tmp_path)
    monkeypatch.setattr(support, "_FOLDER", tmp_path)
    assert support.recorded("99_test") == found


def found(difference, *, distributed=True):
    return Outcome(ANSWERED, {"distributed": distributed, "difference": difference})


def test_several_processes_are_as_good_as_the_worst_of_them():
    assert together({"worker 0": found(1e-7), "worker 1": found(1e-3)}) == found(1e-3)
    assert math.isnan(together({"worker 0": found(math.nan), "worker 1": found(1e-3)}).found["difference"])
    one_is_not = {"worker 0": found(1e-7), "worker 1": found(0.0, distributed=False)}
    assert together(one_is_not) == found(1e-7, distributed=False)


def test_of_several_runs_in_no_fixed_order_the_highest_loss_counts():
    runs = [Outcome(ANSWERED, {"distributed": True, "losses": [0.9, after]}) for after in (0.6, 1.3, 0.7)]
    assert together(dict(enumerate(runs))) == runs[1]


def test_the_first_failure_stands_for_all():
    failed, ended = Outcome(ERROR, message="ValueError: at 127.0.0.1:80"), Outcome(CRASH, message="SIGABRT")
    outcomes = {"worker 1": found(0.0), "worker 0": failed, "worker 2": ended}
    assert together(outcomes) == Outcome(ERROR, message="ValueError: at ...")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("no way to ipv4:127.0.0.1:4077: refused", "no way to ...: refused"),
        ("no way to grpc://localhost:4077", "no way to ..."),
        ("<Thing at 0x7f3a> of pid 4711 and pid=12", "<Thing...> of ... and ..."),
        ("a (PerReplica:{\n  0: [0.5\n 0.25]\n}) of a type", "a (PerReplica:{...}) of a type"),
        ("TensorFlow 2.21.0 of 127 at 3:4", "TensorFlow 2.21.0 of 127 at 3:4"),
    ],
)
def test_a_message_is_that_of_any_run(message, told):
    assert of_any_run(message) == told


@pytest.mark.parametrize(("column", "row"), [("fit_keras_4", "mirrored"), ("estimator", "mirorred")])
def test_an_unknown_case_is_refused_by_name(column, row):
    with pytest.raises(CourseError, match=r"fit_keras_4|'mirorred'"):
        strategy_table.case(column, row)


def test_without_the_environment_of_estimators_the_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(strategy_table, "ESTIMATOR_PYTHON", tmp_path / "none")
    with pytest.raises(CourseError, match="make estimator"):
        strategy_table.measure()


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(strategy_table.SCRIPTS)


def test_the_oracle_goes_down_its_loss(scripts):
    oracle, example = map(importlib.import_module, ("oracle", "example"))
    values = [value.astype(np.float64) for value in example.first_values()]
    features, labels = example.batches()[0]
    loss, gradients = oracle._loss_and_gradients(values, features, labels)
    for at, gradient in enumerate(gradients):
        place = tuple(size // 2 for size in gradient.shape)
        moved = [value.copy() for value in values]
        moved[at][place] += 1e-6
        slope = (oracle._loss_and_gradients(moved, features, labels)[0] - loss) / 1e-6
        assert slope == pytest.approx(gradient[place], rel=1e-3, abs=1e-6)
    losses, trained = oracle.trained()
    assert len(losses) == example.STEPS
    assert losses[0] == pytest.approx(loss)
    assert oracle.mean_loss(trained) < oracle.mean_loss(values)


def test_the_record_is_whole_and_of_the_locked_versions():
    recorded = strategy_support.recorded()
    assert list(recorded.cells) == list(strategy_support.ROWS)
    for row, cells in recorded.cells.items():
        assert list(cells) == [
            each for each in strategy_support.COLUMNS if strategy_support.is_asked(each, row)
        ]
    assert "benchmarks.results 09_strategies" in recorded.how["command"]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z-]+)==(\S+)", lock, re.MULTILINE))
    for package in strategy_table.PACKAGES:
        assert recorded.how[package] == pinned[package]
    estimators = (ROOT / "tools" / "environments" / "estimator.lock").read_text("utf-8")
    assert f"tensorflow-cpu=={recorded.how['tensorflow with Estimators']} " in estimators


def test_no_message_names_a_place_of_one_machine():
    for _row, _column, message in strategy_support.errors(strategy_support.recorded()):
        assert message == of_any_run(message)
        assert not re.search(r"/home|/root|/work|site-packages|\d+\.\d+\.\d+\.\d+|localhost", message)


def test_what_works_and_what_does_not():
    verdicts = {
        row: {column: cell.verdict for column, cell in cells.items()}
        for row, cells in strategy_support.recorded().cells.items()
    }
    assert verdicts["central_storage"].pop("fit_keras_3") == "misreported"
    for row in strategy_support.WITH_ESTIMATOR:
        assert set(verdicts[row].values()) == {"equal"}
    assert verdicts["multi_worker"] == {
        "fit_keras_3": "error",
        "fit_tf_keras": "equal",
        "loop_keras_3": "equal",
        "loop_tf_keras": "equal",
    }
    assert verdicts["parameter_server"] == {
        "fit_keras_3": "error",
        "fit_tf_keras": "asynchronous",
        "loop_keras_3": "asynchronous",
        "loop_tf_keras": "asynchronous",
    }
    assert set(verdicts["tpu"].values()) == {"error"}


def test_errors_stand_with_strategy_and_api_in_the_readers_language():
    cells = {
        "default": {"fit_keras_3": Cell("equal")},
        "tpu": {"loop_keras_3": Cell("error", message="ValueError: no")},
    }
    found = Support({}, cells)
    assert strategy_support.errors(found) == [("TPUStrategy", "custom loop, Keras 3", "ValueError: no")]
    set_language("ja")
    assert strategy_support.errors(found) == [("TPUStrategy", "自作の学習ループ、Keras 3", "ValueError: no")]
