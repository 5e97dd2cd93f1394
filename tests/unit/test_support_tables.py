"""Tables of what each Keras distributes and which strategy works: made of what ran, as the lessons say."""

import math
import re
from pathlib import Path

import pytest

from course_lib.measured.files import Record, load
from course_lib.measured.tables import cell_text
from course_lib.measured.titles import title
from tools.cases.keras import tables
from tools.cases.runner import ERROR

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"distributed": True, "difference": 1e-7}, "equals one device"),
        ({"distributed": True, "difference": math.nan}, "wrong values, no error"),
        ({"distributed": False, "difference": 0.0}, "not split, no error"),
        ({"mistaken": True}, "accepted, no error"),
        ({"distributed": True, "losses": (0.9, 0.6)}, "asynchronous: the loss falls"),
        ({"distributed": True, "losses": (0.6, math.nan)}, "wrong values, no error"),
        (
            {"distributed": True, "difference": 1e-7, "reported_difference": 0.09},
            "trains as one device, reports a wrong loss",
        ),
        (
            {"verdict": "error", "message": "a.UnknownError: /a/b.py:1:2: error: no\nmore"},
            "error: UnknownError",
        ),
        ({"verdict": "crash", "message": "SIGSEGV"}, "ends the process"),
        ({"verdict": "timeout", "message": "no end within 5 s"}, "does not end"),
    ],
)
def test_what_became_of_a_case_is_told(found, text):
    assert cell_text(Record(tables.cell_of(found))) == text


def test_several_processes_or_runs_are_as_good_as_the_worst_of_them():
    def found(difference, *, distributed=True):
        return {"distributed": distributed, "difference": difference}

    assert tables.worst([found(1e-7), found(1e-3)]) == found(1e-3)
    assert math.isnan(tables.worst([found(math.nan), found(1e-3)])["difference"])
    assert tables.worst([found(1e-7), found(0.0, distributed=False)]) == found(1e-7, distributed=False)
    runs = [{"distributed": True, "losses": [0.9, after]} for after in (0.6, 1.3, 0.7)]
    assert tables.worst(runs) == runs[1]
    failed = {"verdict": ERROR, "message": "ValueError"}
    assert tables.worst([found(0.0), failed, found(math.nan)]) == failed


@pytest.mark.parametrize(
    ("name", "cells"),
    [("keras_layouts-support", tables.layouts_table()), ("strategies-support", tables.strategies_table())],
)
def test_a_record_is_whole_of_the_locked_versions_and_every_name_has_a_title(name, cells):
    record = load(name)
    assert [(row, column) for row, columns in record.support.items() for column in columns] == list(cells)
    pinned = dict(re.findall(r"^([a-z-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M))
    assert all(record.how[package] == pinned[package] for package in ("tensorflow", "tf-keras", "keras"))
    assert not [each for pair in cells for each in pair if title(each) == each]
    messages = [cell.get("message", "") for columns in record.support.values() for cell in columns.values()]
    assert not [each for each in messages if re.search(r"/home|/root|/work|site-packages|localhost", each)]


def test_what_the_lesson_says_of_each_keras():
    support = load("keras_layouts-support").support
    found = {
        column: {row: cells[column].verdict for row, cells in support.items() if column in cells}
        for column in tables.KERASES
    }
    assert {of.pop("unmatched_pattern") for of in found.values()} == {"accepted"}
    tf_keras, on_tensorflow, on_jax = found.values()
    assert on_tensorflow.pop("arguments") == on_jax.pop("arguments") == "error"
    assert set(on_tensorflow.values()) == {"no-op"}
    assert set(on_jax.values()) == {"equal"}
    wrong = {row for row, verdict in tf_keras.items() if verdict == "different"}
    failed = {row for row, verdict in tf_keras.items() if verdict == "error"}
    assert wrong == {"training_step", "fit_dataset"}
    assert failed == {"fit_arrays", "evaluate_arrays", "predict_arrays", "weights_h5"}
    assert {tf_keras[row] for row in tf_keras.keys() - wrong - failed} == {"equal"}


def test_what_the_lesson_says_of_each_strategy():
    support = load("strategies-support").support
    found = {row: {column: cell.verdict for column, cell in cells.items()} for row, cells in support.items()}
    assert found["central_storage"].pop("fit_keras_3") == "misreported"
    for row in tables.WITH_ESTIMATOR:
        assert set(found[row].values()) == {"equal"}
    for row, verdict in (("multi_worker", "equal"), ("parameter_server", "asynchronous")):
        assert found[row].pop("fit_keras_3") == "error"
        assert list(found[row].values()) == [verdict] * 3
    assert list(found["tpu"].values()) == ["error"] * 4
