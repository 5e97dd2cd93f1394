"""Tables of what each Keras distributes and what works under strategies: of what ran, as the lessons say."""

import math
import re
from pathlib import Path

import pytest

from course_lib.measured.files import Record, load
from course_lib.measured.tables import cell_text, title
from tools.cases.keras import tables
from tools.cases.strategies import table

ROOT = Path(__file__).parents[2]
NEWEST = next(iter(table.load().values()))
OF_STRATEGIES = [(row, column) for row, cells in table.view(NEWEST).items() for column in cells]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"distributed": True, "difference": 1e-7}, "equals one device"),
        ({"distributed": True, "difference": math.nan}, "wrong values, no error"),
        ({"distributed": False, "difference": 0.0}, "not split, no error"),
        ({"mistaken": True}, "accepted, no error"),
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


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("keras_layouts-support", [*tables.layouts_table()]),
        ("strategies-support", [*OF_STRATEGIES, *tables.estimator_table()]),
    ],
)
def test_a_record_is_whole_of_the_locked_versions_and_every_name_has_a_title(name, cells):
    record = load(name)
    assert {(row, column) for row, columns in record.support.items() for column in columns} == {*cells}
    pinned = dict(re.findall(r"^([a-z-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M))
    assert all(record.how[package] == pinned[package] for package in ("tensorflow", "tf-keras", "keras"))
    assert not [each for pair in cells for each in pair if title(each) == each]
    messages = [cell.get("message", "") for columns in record.support.values() for cell in columns.values()]
    assert not [each for each in messages if re.search(r"/home|/root|/work|site-packages|localhost", each)]


def test_each_case_of_a_feature_has_a_name_of_its_own_and_a_program_with_its_feature():
    cases = table.every_case()
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        program = case.program
        compile(program, case.name, "exec")
        assert case.feature.code in program
        assert f'"{case.strategy}", "{case.way}", {table.PARTS[case.part]}\n' in program


def test_a_cure_is_a_feature_that_is_tried():
    names = {feature.name for feature in table.features()}
    assert {feature.cure for feature in table.features() if feature.cure} <= names


def test_what_became_of_a_case_is_told_without_digits_that_differ_from_run_to_run():
    feature = table.features()[0]
    equal = {"verdict": "equal", "difference": {"loss": 1.4e-7, "weights": 0.0}, "copies": 2}
    assert table.answer_of(equal, feature) == {"verdict": "equal", "closely": 1e-6}
    nan = {"verdict": "different", "difference": {"loss": 1e-9, "weights": float("nan")}}
    assert str(table.answer_of(nan, feature)) == "{'verdict': 'different', 'difference': {'weights': nan}}"


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
    for row, cells in table.view(NEWEST).items():
        assert {name: cell for name, cell in support[row].items() if name != "estimator"} == cells
    verdicts = {(row, name): cell.verdict for row, cells in support.items() for name, cell in cells.items()}
    unlike = {place: verdict for place, verdict in verdicts.items() if verdict != "equal"}
    assert unlike == {
        ("central_storage", "fit_keras_3"): "misreported",
        ("multi_worker", "fit_keras_3"): "error",
        ("parameter_server", "fit_keras_3"): "error",
        ("parameter_server", "fit_tf_keras"): "asynchronous",
    }
