"""On other machines, with arithmetic other in the last bits, outputs stay and training agrees with oracles.

Code is the same in every language, so one language tells. `make nbval` executes what `setup` chooses by
itself, oneDNN off and one thread an operation; the translations with the arithmetic of the oldest processor.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.course import COURSE
from tests.notebooks.nbval import IN_THEIR_KERNELS, OPTIONS, compared
from tools.environments import estimator

pytestmark = pytest.mark.drill_all
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
# The tests that hold computed floating-point numbers against others.
COMPARING_FLOATS = ("lesson_*", "plan*", "block")


def every_output_stays(topics, environment, options=OPTIONS):
    notebooks = [COURSE.notebook("en", topic) for topic in topics]
    cells = [cell for path in notebooks for cell in nbformat.read(path, 4).cells]
    num_code_cells = sum(cell.cell_type == "code" for cell in cells)
    run = compared(notebooks, environment, options)
    assert run.returncode == 0, run.stdout
    assert re.search(rf"^{num_code_cells} passed", run.stdout, re.M), run.stdout  # none left out


@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_every_output_stays_on_another_machine(machine):
    every_output_stays(COURSE.topics, OTHER_MACHINES[machine])


@pytest.mark.skipif(not estimator.is_ready(), reason="`make estimator` makes its environment")
@pytest.mark.parametrize(
    "machine", [{"ONEDNN_MAX_CPU_ISA": "SSE41"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}], ids=str
)
def test_the_outputs_of_the_appendix_on_estimators_stay(machine):
    every_output_stays(["estimators"], machine, IN_THEIR_KERNELS)


@pytest.mark.parametrize("processor", ["SSE41", "AVX2"])
def test_training_agrees_with_its_oracles_in_other_arithmetic(processor):
    found = [sorted(COURSE.root.glob(f"tests/tf/test_{name}.py")) for name in COMPARING_FLOATS]
    assert all(found)
    environment = {"ONEDNN_MAX_CPU_ISA": processor, "TF_ENABLE_ONEDNN_OPTS": "1"}
    environment["COURSE_TESTS_OPTIMIZE_GRAPHS"] = "1"  # all of them, as they are for readers
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", "not drill and not drill_all", *(path for paths in found for path in paths)],
        cwd=COURSE.root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout  # and none skipped
