"""Every stored output stays on other machines, whose arithmetic differs from this one's in the last bits.

Code is the same in every language, so one language tells. `make nbval` executes what `setup` chooses by
itself, oneDNN off and one thread an operation; the translations with the arithmetic of the oldest processor.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.nbval import compared
from tools.lesson.sources import Course

COURSE = Course(Path(__file__).parents[2])
MOVED_VALUES = os.pathsep.join(
    [str(Path(__file__).with_name("moved_values")), os.environ.get("PYTHONPATH", "")]
)
OTHER_MACHINES = {
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "with oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "1"},
    "4 threads": {"TF_NUM_INTRAOP_THREADS": "4"},
    "TensorFlow's threads": {"TF_NUM_INTRAOP_THREADS": "0", "TF_NUM_INTEROP_THREADS": "0"},
    "moved initial values": {"PYTHONPATH": MOVED_VALUES},
}


def every_output_stays(environment):
    notebooks = [COURSE.notebook("en", name) for name in COURSE.topics]
    cells = [cell for path in notebooks for cell in nbformat.read(path, 4).cells]
    num_code_cells = sum(cell.cell_type == "code" for cell in cells)
    run = compared(notebooks, environment)
    assert run.returncode == 0, run.stdout
    assert re.search(rf"^{num_code_cells} passed", run.stdout, re.M), run.stdout  # none left out


@pytest.mark.drill_all
@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_every_output_stays_on_another_machine(machine):
    every_output_stays(OTHER_MACHINES[machine])
