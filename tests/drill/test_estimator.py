"""The Estimator trains as by hand in the environment that `make estimator` makes; that runs this test too."""

import pytest

from benchmarks.strategy_table import ESTIMATOR_PYTHON, outcome
from benchmarks.tables import cell_of
from course_lib.measured.strategy_support import WITH_ESTIMATOR
from course_lib.measured.support import EQUAL


@pytest.mark.drill_all
@pytest.mark.parametrize("strategy", WITH_ESTIMATOR)
def test_it_trains_and_evaluates_as_by_hand(strategy):
    if not ESTIMATOR_PYTHON.exists():
        pytest.skip("there is no environment with Estimators in build/estimator-venv: make estimator")
    found = cell_of(outcome("estimator", strategy))
    assert found.verdict == EQUAL, found
