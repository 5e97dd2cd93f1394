"""Tables of what each Keras distributes and which strategy works: made of what ran, as the lessons say."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import keras_table, strategy_table, tables
from benchmarks.cases import ANSWERED, CRASH, ERROR, TIMEOUT, Outcome
from benchmarks.strategy_table import of_any_run, together
from course_lib import i18n
from course_lib.measured.files import Record, load
from course_lib.measured.tables import Table, cell_text, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("finding", "verdict", "text"),
    [
        ({"distributed": True, "difference": 1e-7}, "equal", "equals one device"),
        ({"distributed": True, "difference": 1e-3}, "different", "wrong values, no error"),
        ({"distributed": True, "difference": math.nan}, "different", "wrong values, no error"),
        ({"distributed": True}, "equal", "works"),
        ({"distributed": False, "difference": 0.0}, "no-op", "not split, no error"),
        ({"mistaken": True}, "accepted", "accepted, no error"),
        ({"distributed": True, "losses": (0.9, 0.6)}, "asynchronous", "asynchronous: the loss falls"),
        ({"distributed": True, "losses": (0.6, 0.6)}, "different", "wrong values, no error"),
        ({"distributed": True, "losses": (0.6, math.nan)}, "different", "wrong values, no error"),
        (
            {"distributed": True, "difference": 1e-7, "reported_difference": 0.09},
            "misreported",
            "trains as one device, reports a wrong loss",
        ),
        (
            {"distributed": True, "difference": 0.5, "reported_difference": 0.09},
            "different",
            "wrong values, no error",
        ),
    ],
)
def test_what_a_case_found_is_a_verdict(finding, verdict, text):
    cell = tables.cell_of(Outcome(ANSWERED, finding))
    assert (cell.verdict, cell_text(cell)) == (verdict, text)


@pytest.mark.parametrize(
    ("outcome", "message", "text"),
    [
        (
            Outcome(ERROR, message="tensorflow.errors.UnknownError: /a/b.py:1:2: error: 'tf.Add' no\nmore"),
            "UnknownError: 'tf.Add' no",
            "error: UnknownError",
        ),
        (Outcome(CRASH, message="SIGSEGV"), "SIGSEGV", "ends the process"),
        (Outcome(TIMEOUT, message="no end within 5 s"), "no end within 5 s", "does not end"),
    ],
)
def test_a_case_that_failed_keeps_its_message(outcome, message, text):
    cell = tables.cell_of(outcome)
    assert (cell.message, cell_text(cell)) == (message, text)


def found(difference, *, distributed=True):
    return Outcome(ANSWERED, {"distributed": distributed, "difference": difference})


def test_several_processes_or_runs_are_as_good_as_the_worst_of_them():
    assert together({"worker 0": found(1e-7), "worker 1": found(1e-3)}) == found(1e-3)
    assert math.isnan(together({"worker 0": found(math.nan), "worker 1": found(1e-3)}).found["difference"])
    one_is_not = {"worker 0": found(1e-7), "worker 1": found(0.0, distributed=False)}
    assert together(one_is_not) == found(1e-7, distributed=False)
    runs = [Outcome(ANSWERED, {"distributed": True, "losses": [0.9, after]}) for after in (0.6, 1.3, 0.7)]
    assert together(dict(enumerate(runs))) == runs[1]
    failed, ended = Outcome(ERROR, message="ValueError: at 127.0.0.1:80"), Outcome(CRASH, message="SIGABRT")
    outcomes = {"worker 1": found(0.0), "worker 0": failed, "worker 2": ended}
    assert together(outcomes) == Outcome(ERROR, message="ValueError: at ...")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no way to ipv4:127.0.0.1:4077: refused", "no way to ...: refused"),
        ("<Thing at 0x7f3a> of pid 4711 at grpc://localhost:4077", "<Thing...> of ... at ..."),
        ("a (PerReplica:{\n  0: [0.5\n 0.25]\n}) of a type", "a (PerReplica:{...}) of a type"),
        ("TensorFlow 2.21.0 of 127 at 3:4", "TensorFlow 2.21.0 of 127 at 3:4"),
    ],
)
def test_a_message_is_that_of_any_run(message, shown):
    assert of_any_run(message) == shown


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(tables.SCRIPTS)
    return importlib.import_module


def test_the_oracle_goes_down_its_loss(scripts):
    oracle, example = map(scripts, ("oracle", "example"))
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


def test_the_table_says_the_same_as_text_and_as_html():
    fit = {"tf_keras": Record(verdict="no-op"), "keras_jax": Record(verdict="equal", difference=1e-7)}
    shown = table({"fit_arrays": fit, "a <step>": {"keras_jax": Record(verdict="equal")}})
    assert repr(shown) == (
        "             tf_keras with DTensor  Keras 3 on JAX\n"
        "fit, arrays  not split, no error    equals one device\n"
        "a <step>     –                      works"
    )
    assert shown._repr_html_() == (
        "<table><thead><tr><th></th><th>tf_keras with DTensor</th><th>Keras 3 on JAX</th></tr></thead><tbody>"
        '<tr><th scope="row">fit, arrays</th><td>not split, no error</td><td>equals one device</td></tr>'
        '<tr><th scope="row">a &lt;step&gt;</th><td>–</td><td>works</td></tr></tbody></table>'
    )
    i18n.set_language("ja")
    assert table({"default": {"loop_keras_3": fit["keras_jax"]}}).columns == ("自作の学習ループ（Keras 3）",)


def test_japanese_columns_line_up():
    shown = Table(("デバイス1台", "Keras 3"), {"学習": ("正解率", "0.5"), "fit": ("–", "誤り")})
    assert repr(shown) == ("      デバイス1台  Keras 3\n学習  正解率       0.5\nfit   –            誤り")


@pytest.mark.parametrize(
    ("name", "module"), [("keras_layouts-support", keras_table), ("strategies-support", strategy_table)]
)
def test_a_record_is_whole_and_names_its_command_and_versions(name, module):
    record = load(name)
    assert list(record.support) == list(module.ROWS)
    assert list(record.support[module.ROWS[0]]) == list(module.COLUMNS)  # as `table` takes it
    assert f"benchmarks.results {name}" in record.how.command
    assert set(module.PACKAGES) <= set(record.how)


def test_the_record_of_strategies_is_of_the_locked_versions():
    how = load("strategies-support").how
    pinned = dict(re.findall(r"^([a-z-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M))
    assert all(how[package] == pinned[package] for package in strategy_table.PACKAGES)
    estimators = (ROOT / "tools" / "environments" / "estimator.lock").read_text("utf-8")
    assert f"tensorflow-cpu=={how['tensorflow with Estimators']} " in estimators


def test_no_message_names_a_place_of_one_machine():
    for name in ("keras_layouts-support", "strategies-support"):
        for cells in load(name).support.values():
            for cell in cells.values():
                message = cell.get("message", "")
                assert message == of_any_run(message)
                assert not re.search(r"/home|/root|/work|site-packages|\d+\.\d+\.\d+\.\d+|localhost", message)


def verdicts_by(name, *, columns):
    """The verdicts of a record: by column and row, or by row and column."""
    found = {}
    for row, cells in load(name).support.items():
        for column, cell in cells.items():
            outer, inner = (column, row) if columns else (row, column)
            found.setdefault(outer, {})[inner] = cell.verdict
    return found


def test_what_the_lesson_says_of_each_keras():
    found = verdicts_by("keras_layouts-support", columns=True)
    assert {of.pop("unmatched_pattern") for of in found.values()} == {"accepted"}
    tf_keras, on_tensorflow, on_jax = (found[column] for column in keras_table.COLUMNS)
    assert on_tensorflow.pop("arguments") == on_jax.pop("arguments") == "error"
    assert set(on_tensorflow.values()) == {"no-op"}
    assert set(on_jax.values()) == {"equal"}
    wrong = {row for row, verdict in tf_keras.items() if verdict == "different"}
    failed = {row for row, verdict in tf_keras.items() if verdict == "error"}
    assert wrong == {"training_step", "fit_dataset"}
    assert failed == {"fit_arrays", "evaluate_arrays", "predict_arrays", "weights_h5"}
    assert {tf_keras[row] for row in tf_keras.keys() - wrong - failed} == {"equal"}


def test_what_the_lesson_says_of_each_strategy():
    found = verdicts_by("strategies-support", columns=False)
    assert found["central_storage"].pop("fit_keras_3") == "misreported"
    for row in strategy_table.WITH_ESTIMATOR:
        assert set(found[row].values()) == {"equal"}
    for row, verdict in (("multi_worker", "equal"), ("parameter_server", "asynchronous")):
        assert found[row].pop("fit_keras_3") == "error"
        assert list(found[row].values()) == [verdict] * 3
    assert list(found["tpu"].values()) == ["error"] * 4
