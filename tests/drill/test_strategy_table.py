"""Cases of the table of strategies run as they are recorded."""

import pytest

from benchmarks.strategy_table import COLUMNS, ROWS, outcome
from benchmarks.tables import cell_of
from course_lib.measured.files import load


@pytest.mark.drill_all
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("column", [column for column in COLUMNS if column != "estimator"])
def test_it_is_as_recorded(row, column):
    found, recorded = cell_of(outcome(column, row)), load("strategies-support").support[row][column]
    assert (found.verdict, found.get("message")) == (recorded.verdict, recorded.get("message"))
