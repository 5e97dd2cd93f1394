"""The table of what each Keras distributes: made of what ran, whole, and what the lesson says of it."""

import pytest

from benchmarks import keras_table
from benchmarks.cases import ANSWERED, CRASH, ERROR, TIMEOUT, Outcome
from course_lib import CourseError
from course_lib.measured import keras_support, support
from course_lib.measured.support import Cell, Support, of_finding


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        ({"distributed": True, "difference": 1e-7}, "equals one device"),
        ({"distributed": True, "difference": 1e-3}, "wrong values, in silence"),
        ({"distributed": True, "difference": float("nan")}, "wrong values, in silence"),
        ({"distributed": True}, "works"),
        ({"distributed": False, "difference": 0.0}, "nothing split, in silence"),
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
    assert keras_table.cell_of(outcome) == cell
    assert cell.text() == text


@pytest.mark.parametrize(("column", "row"), [("keras_torch", "evaluate"), ("tf_keras", "train")])
def test_an_unknown_case_is_refused_by_name(column, row):
    with pytest.raises(CourseError, match=r"keras_torch|'train'"):
        keras_table.case(column, row)


def test_every_case_is_one_that_its_script_knows():
    for column in keras_support.COLUMNS:
        for row in keras_support.ROWS:
            assert f"def {row}() -> Mapping" in keras_table.case(column, row).script.read_text("utf-8")


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
    cells = {"fit": {"one": Cell("no-op", 0.0), "other": Cell("equal", 1e-7)}}
    table = support.table(Support({}, cells), {"fit": "fit <arrays>"}, {"one": "One", "other": "Other"})
    assert repr(table) == (
        "              One                        Other\n"
        "fit <arrays>  nothing split, in silence  equals one device"
    )
    assert table._repr_html_() == (
        "<table><thead><tr><th></th><th>One</th><th>Other</th></tr></thead><tbody>"
        '<tr><th scope="row">fit &lt;arrays&gt;</th><td>nothing split, in silence</td>'
        "<td>equals one device</td></tr></tbody></table>"
    )


@pytest.fixture(scope="module")
def verdicts():
    cells = keras_support.recorded().cells
    return {column: {row: cells[row][column].verdict for row in cells} for column in keras_support.COLUMNS}


def test_the_record_is_whole(verdicts):
    assert all(tuple(rows) == keras_support.ROWS for rows in verdicts.values())
    how = keras_support.recorded().how
    assert how["command"] == "make jax && make results"
    assert {"tensorflow", "tf-keras", "keras", "jax"} <= set(how)


def test_what_the_lesson_says_of_tf_keras(verdicts):
    plain, uncombined = verdicts["tf_keras"], verdicts["tf_keras_uncombined"]
    silent = {"training_step", "fit_dataset"}
    assert {row for row in plain if plain[row] != uncombined[row]} == silent
    assert all((plain[row], uncombined[row]) == ("different", "equal") for row in silent)
    assert {row for row in plain if uncombined[row] == "equal"} == silent | {
        "arguments",
        "patterns",
        "equal_seeds",
        "evaluate",
        "weights",
    }
    assert {row for row in plain if plain[row] == "error"} == {"fit_arrays", "predict"}
    assert plain["unmatched_pattern"] == "no-op"


def test_what_the_lesson_says_of_keras_3(verdicts):
    on_tensorflow, on_jax = verdicts["keras_tensorflow"], verdicts["keras_jax"]
    assert on_tensorflow.pop("arguments") == on_jax.pop("arguments") == "error"
    assert set(on_tensorflow.values()) == {"no-op"}
    assert on_jax.pop("unmatched_pattern") == "no-op"
    assert set(on_jax.values()) == {"equal"}
