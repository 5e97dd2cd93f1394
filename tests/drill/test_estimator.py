"""The appendix on Estimators, and those of the table, in the environment that `make estimator` makes."""

import pytest

from benchmarks.strategy_table import WITH_ESTIMATOR, outcome
from benchmarks.tables import cell_of
from tests.course import COURSE
from tests.notebooks.nbval import IN_THEIR_KERNELS, compared
from tools.environments import estimator

APPENDIX = COURSE.notebook("en", "estimators")


@pytest.fixture(autouse=True)
def ready():
    if not estimator.is_ready():
        pytest.skip("there is no current environment with Estimators in build/estimator-venv: make estimator")


@pytest.mark.drill_all
@pytest.mark.parametrize("strategy", WITH_ESTIMATOR)
def test_it_trains_and_evaluates_as_by_hand(strategy):
    found = cell_of(outcome("estimator", strategy))
    assert found.verdict == "equal", found


@pytest.mark.drill_all
@pytest.mark.parametrize(
    "machine", [{"ONEDNN_MAX_CPU_ISA": "SSE41"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}], ids=str
)
def test_the_outputs_of_the_appendix_stay_on_another_machine(machine):
    run = compared([APPENDIX], machine, IN_THEIR_KERNELS)
    assert run.returncode == 0, run.stdout
    code_cells = [cell for cell in COURSE.lesson("estimators").cells if cell.kind == "code"]
    assert f"{len(code_cells)} passed" in run.stdout
