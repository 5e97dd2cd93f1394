"""The table of what each Keras distributes: made of what ran, whole, and what the lesson says of it."""

import importlib

import pytest

from benchmarks import keras_table
from benchmarks.cases import ANSWERED, CRASH, ERROR, TIMEOUT, Outcome
from benchmarks.tables import cell_of
from course_lib import CourseError
from course_lib.measured import keras_support, support
from course_lib.measured.support import Cell, Support, of_finding


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        ({"distributed": True, "difference": 1e-7}, "equals one device"),
        ({"distributed": True, "difference": 1e-3}, "wrong values, no error"),
        ({"distributed": True, "difference": float("nan")}, "wrong values, no error"),
        ({"distributed": True}, "works"),
        ({"distributed": False, "difference": 0.0}, "not split, no error"),
        ({"mistaken": True}, "accepted, no error"),
    ],
)
def test_what_was_found_is_a_verdict(finding, text):
    assert of_finding(**finding).text() == text


@pytest.mark.parametrize(
    ("outcome", "cell", "text"),
    [
        (Outcome(ANSWERED, {"distributed": True}), Cell("equal"), "works"),
        (
            Outcome(
                ERROR, message="tensorflow.errors.UnknownError: /a/b.py:1:2: error: 'tf.Add' op no\nmore"
            ),
            Cell("error", message="UnknownError: 'tf.Add' op no"),
            "error: UnknownError",
        ),
        (Outcome(CRASH, message="SIGSEGV"), Cell("crash", message="SIGSEGV"), "ends the process"),
        (
            Outcome(TIMEOUT, message="no end within 5 s"),
            Cell("timeout", message="no end within 5 s"),
            "does not end",
        ),
    ],
)
def test_what_became_of_a_case_is_a_cell(outcome, cell, text):
    assert cell_of(outcome) == cell
    assert cell.text() == text


@pytest.mark.parametrize(("column", "row"), [("keras_torch", "evaluate"), ("tf_keras", "train")])
def test_an_unknown_case_is_refused_by_name(column, row):
    with pytest.raises(CourseError, match=r"keras_torch|'train'"):
        keras_table.case(column, row)


def test_every_case_is_one_that_its_script_knows():
    for column in keras_support.COLUMNS:
        for row in keras_support.ROWS:
            if keras_support.is_asked(column, row):
                case = keras_table.case(column, row)
                assert f"def {case.arguments[0]}() -> Mapping" in case.script.read_text("utf-8")


def test_a_case_with_uncombined_all_reduces_is_the_same_in_another_environment():
    plain, uncombined = (
        keras_table.case("tf_keras", row) for row in ("fit_dataset", "fit_dataset_uncombined")
    )
    assert (plain.script, plain.arguments) == (uncombined.script, uncombined.arguments)
    assert (plain.environment, uncombined.environment) == ({}, {keras_table.GROUP_SIZE: "1"})


HIDDEN, SLOT = ((20, 48), (20, 24)), ((48, 2), (24, 2))


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ([HIDDEN, ((48,), (24,)), SLOT, ((2,), (2,)), ((), ())], True),
        ([HIDDEN, SLOT, ((20, 48), (20, 48))], False),  # a slot that is whole
        ([((20, 48), (10, 48))], False),  # split along another axis
        ([((48, 2), (48, 2))], False),
    ],
)
def test_what_devices_hold_is_compared_with_what_was_asked(held, asked, monkeypatch):
    monkeypatch.syspath_prepend(keras_table.SCRIPTS)
    assert importlib.import_module("example").is_as_asked(held) is asked


def test_without_the_environment_of_jax_the_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(keras_table, "JAX_PYTHON", tmp_path / "none")
    with pytest.raises(CourseError, match="make jax"):
        keras_table.measure()


def test_what_is_saved_is_recorded(tmp_path, monkeypatch):
    found = Support({"command": "a test"}, {"row": {"column": Cell("error", message="ValueError: no")}})
    support.save(found, "99_test", tmp_path)
    monkeypatch.setattr(support, "_FOLDER", tmp_path)
    assert support.recorded("99_test") == found
    assert support.recorded("98_test") is None


def test_the_table_says_the_same_as_text_and_as_html():
    fit = {"one": Cell("no-op", 0.0), "other": Cell("equal", 1e-7)}
    found = Support({}, {"fit": fit, "step": {"other": Cell("equal")}})
    table = support.table(found, {"fit": "fit <arrays>", "step": "a step"}, {"one": "One", "other": "Other"})
    assert repr(table) == (
        "              One                  Other\n"
        "fit <arrays>  not split, no error  equals one device\n"
        "a step        –                    works"
    )
    assert table._repr_html_() == (
        "<table><thead><tr><th></th><th>One</th><th>Other</th></tr></thead><tbody>"
        '<tr><th scope="row">fit &lt;arrays&gt;</th><td>not split, no error</td>'
        "<td>equals one device</td></tr>"
        '<tr><th scope="row">a step</th><td>–</td><td>works</td></tr></tbody></table>'
    )


def test_japanese_columns_line_up():
    table = support.Table(("デバイス1台", "Keras 3"), {"学習": ("正解率", "0.5"), "fit": ("–", "誤り")})
    assert repr(table) == ("      デバイス1台  Keras 3\n学習  正解率       0.5\nfit   –            誤り")


@pytest.fixture(scope="module")
def verdicts():
    cells = keras_support.recorded().cells
    return {
        column: {row: found[column].verdict for row, found in cells.items() if column in found}
        for column in keras_support.COLUMNS
    }


def test_the_record_is_whole(verdicts):
    for column, found in verdicts.items():
        asked = [row for row in keras_support.ROWS if keras_support.is_asked(column, row)]
        assert list(found) == asked
    how = keras_support.recorded().how
    assert "benchmarks.results 08_keras" in how["command"]
    assert {"tensorflow", "tf-keras", "keras", "jax"} <= set(how)


def test_what_the_lesson_says_of_tf_keras(verdicts):
    found = verdicts["tf_keras"]
    assert found.pop("unmatched_pattern") == "accepted"
    assert {row for row in found if found[row] == "different"} == {"training_step", "fit_dataset"}
    failed = {row for row in found if found[row] == "error"}
    assert failed == {"fit_arrays", "evaluate_arrays", "predict_arrays", "weights_h5"}
    assert all(verdict in ("equal", "different", "error") for verdict in found.values())


def test_what_the_lesson_says_of_keras_3(verdicts):
    on_tensorflow, on_jax = verdicts["keras_tensorflow"], verdicts["keras_jax"]
    for found in (on_tensorflow, on_jax):
        assert found.pop("arguments") == "error"
        assert found.pop("unmatched_pattern") == "accepted"
    assert set(on_tensorflow.values()) == {"no-op"}
    assert set(on_jax.values()) == {"equal"}
