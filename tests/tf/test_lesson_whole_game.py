"""What a reader may change in lesson 0 and its program: the devices, the meshes and `specs`."""

import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.steps import WHOLE_GAME, dtensor
from tests.course import COURSE


def test_a_slip_in_specs_and_an_axis_of_unequal_parts_are_errors_that_name_them():
    mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
    specs = dict(WHOLE_GAME.specs)
    specs["w1"] = specs.pop("W1")
    with pytest.raises(KeyError, match="W1"):
        WHOLE_GAME.layouts_on(mesh, specs)
    layout = WHOLE_GAME.layouts_on(mesh, WHOLE_GAME.specs)["x"]
    with pytest.raises(ValueError, match="axis 0: 60 is not 8 equal parts along 'batch'"):
        WHOLE_GAME.shard(np.zeros((60, 1200), "float32"), layout)


CHANGES = [("whole_game", "DEVICES = 8", f"DEVICES = {count}") for count in (4, 16)]
CHANGES += [("your_mesh", '("batch", 4)', '("batch", 2)')]


@pytest.mark.drill
@pytest.mark.parametrize(("name", "line", "changed"), CHANGES)
def test_its_programs_run_on_another_number_of_devices(name, line, changed, tmp_path):
    text = (COURSE.root / f"notebooks/plain/{name}.py").read_text("utf-8")
    assert line in text
    program = tmp_path / "mine.py"
    program.write_text(text.replace(line, changed), "utf-8")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""}
    subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, check=True)  # compares its runs
