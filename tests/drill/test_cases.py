"""Cases of the stored tables come out again as they are recorded."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from course_lib.measured.files import load
from course_lib.specs.verdict import DEAD, WRONG
from tests.course import COURSE
from tools.cases import runner
from tools.cases.keras.tables import ESTIMATOR_PYTHON, JAX_PYTHON, cell_of, estimator_table, layouts_table
from tools.cases.operations import table as operations
from tools.cases.strategies import table as strategies

# TensorFlow is imported and not started where cases are forked from: so not in this process.
RUN_AGAIN = """
import json, sys
from tools.cases import runner
from tools.cases.{table} import measure, table
wanted = json.load(sys.stdin)
cases = {{case.name: case for case in table.every_case() if case.name in wanted}}
found = runner.run(list(map(measure.as_case, cases.values())))
print(json.dumps({{name: measure.verdict_of(cases[name], record) for name, record in found}}))
"""
TABLES = {"keras_layouts-support": layouts_table(), "strategies-support": estimator_table()}
FEATURES = next(iter(strategies.load().values()))
OFTEN = (("fit_dataset", "tf_keras"),)


def verdicts_of_operations() -> dict[str, str]:
    """Returns what does not depend on chance, by the names of cases.

    On 12 devices messages may get mixed up, and an operation that differs between versions reads memory that
    is not its own.
    """
    newest, older = operations.load().values()
    cases = [case for case in operations.every_case() if case.sizes != "12"]
    by_chance = {
        each.operation for each in cases if newest[each.name]["verdict"] != older[each.name]["verdict"]
    }
    return {each.name: newest[each.name]["verdict"] for each in cases if each.operation not in by_chance}


def verdicts_again(name: str, wanted: list[str]) -> dict[str, str]:
    """Runs cases of a table again; returns the verdict of each."""
    command = [sys.executable, "-c", RUN_AGAIN.format(table=name)]
    done = subprocess.run(
        command, cwd=COURSE.root, input=json.dumps(wanted), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    again: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert again.keys() == set(wanted)
    return again


@pytest.mark.drill
def test_operations_say_what_the_table_says():
    stored = verdicts_of_operations()
    grave = {}  # of each expression and verdict one case
    for case in operations.every_case():
        if stored.get(case.name) in (WRONG, DEAD):
            grave.setdefault((case.operation.run, stored[case.name]), case.name)
    again = verdicts_again("operations", [*random.Random(0).sample(list(stored), 200), *grave.values()])
    assert {name: verdict for name, verdict in again.items() if verdict != stored[name]} == {}


# Of each feature that is wrong, under two replicas, one case: a process of its own takes about a second.
GRAVE = {
    case.feature.name: case.name
    for case in reversed(strategies.every_case())
    if FEATURES[case.name]["verdict"] == strategies.DIFFERENT and case.strategy == strategies.MIRRORED
}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            [*GRAVE.values(), *random.Random(0).sample(list(FEATURES), 20)], marks=pytest.mark.drill
        ),
        pytest.param(list(FEATURES), marks=pytest.mark.drill_all),
    ],
    ids=("sample", "all"),
)
def test_features_say_what_the_table_says(names):
    again = verdicts_again("strategies", list(dict.fromkeys(names)))
    assert {name: verdict for name, verdict in again.items() if verdict != FEATURES[name]["verdict"]} == {}


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [
        pytest.param(name, *cell, marks=pytest.mark.drill if cell in OFTEN else pytest.mark.drill_all)
        for name, cells in TABLES.items()
        for cell in cells
    ],
)
def test_a_case_of_keras_or_a_strategy_is_as_recorded(name, row, column):
    needed = {"keras_jax": JAX_PYTHON, "estimator": ESTIMATOR_PYTHON}.get(column)
    if needed and not needed.exists():
        pytest.skip(f"there is no {needed.parents[1].name}: make jax, make estimator")
    ((_name, found),) = runner.run([TABLES[name][row, column]])
    cell, recorded = cell_of(found), load(name).support[row][column]
    assert (cell["verdict"], cell.get("message")) == (recorded.verdict, recorded.get("message"))
