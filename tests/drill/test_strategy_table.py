"""Cases of the table of strategies run as they are recorded: two in each CI run, all of them weekly."""

import pytest

from benchmarks.strategy_table import COLUMNS, ROWS, outcome
from benchmarks.tables import cell_of
from course_lib.measured.files import load

IN_EACH_CI_RUN = [("mirrored", "loop_keras_3"), ("multi_worker", "fit_tf_keras")]
OTHERS = [
    (row, column)
    for row in ROWS
    for column in COLUMNS
    if column != "estimator" and (row, column) not in IN_EACH_CI_RUN
]


@pytest.mark.drill
@pytest.mark.parametrize(("row", "column"), IN_EACH_CI_RUN)
def test_it_equals_one_device(row, column):
    assert cell_of(outcome(column, row)).verdict == "equal"


@pytest.mark.drill_all
@pytest.mark.parametrize(("row", "column"), OTHERS)
def test_it_is_as_recorded(row, column):
    found, recorded = cell_of(outcome(column, row)), load("09_strategies").support[row][column]
    assert (found.verdict, found.get("message")) == (recorded.verdict, recorded.get("message"))
