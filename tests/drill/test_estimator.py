"""The appendix on Estimators, in the environment that `make estimator` makes."""

import pytest

from tests.course import COURSE
from tests.notebooks.nbval import IN_THEIR_KERNELS, compared
from tools.environments import estimator

APPENDIX = COURSE.notebook("en", "estimators")


@pytest.mark.drill_all
@pytest.mark.skipif(not estimator.is_ready(), reason="`make estimator` makes its environment")
@pytest.mark.parametrize(
    "machine", [{"ONEDNN_MAX_CPU_ISA": "SSE41"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}], ids=str
)
def test_the_outputs_of_the_appendix_stay_on_another_machine(machine):
    run = compared([APPENDIX], machine, IN_THEIR_KERNELS)
    assert run.returncode == 0, run.stdout
    code_cells = [cell for cell in COURSE.lesson("estimators").cells if cell.kind == "code"]
    assert f"{len(code_cells)} passed" in run.stdout
