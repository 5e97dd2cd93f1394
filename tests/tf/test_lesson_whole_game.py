"""What a reader may change in lesson 0: the meshes and `specs`. Its program: test_plain.py."""

import numpy as np
import pytest

from benchmarks.steps import WHOLE_GAME, dtensor


def test_a_slip_in_specs_and_an_axis_of_unequal_parts_are_errors_that_name_them():
    mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
    specs = dict(WHOLE_GAME.specs)
    specs["w1"] = specs.pop("W1")
    with pytest.raises(KeyError, match="W1"):
        WHOLE_GAME.layouts_on(mesh, specs)
    layout = WHOLE_GAME.layouts_on(mesh, WHOLE_GAME.specs)["x"]
    with pytest.raises(ValueError, match="axis 0: 60 is not 8 equal parts along 'batch'"):
        WHOLE_GAME.shard(np.zeros((60, 1200), "float32"), layout)
