"""The code of a choice in TensorFlow, run as it stands: each device holds what the sharding says."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from course_lib.devices import dtensor as ours
from course_lib.specs.sharding import Sharding, numbered_tensor
from tests.code_choices import PLANS, expected, page_shardings, program

# What a process that has nothing of the course does with a program.
ALONE = """
import json, sys
names = {}
exec(sys.stdin.read(), names)
parts = names["dtensor"].unpack(names["tensor"])
print(json.dumps([part.numpy().tolist() for part in parts]))
assert "course_lib" not in sys.modules
"""


def made(choice) -> list:
    """Runs the code of a choice on the devices of these tests; returns the tensors that it makes."""
    asked, names = program(choice, "TensorFlow"), {}
    exec(asked["code"], names)
    if isinstance(choice, Sharding):
        return [names["tensor"]]
    return [names["distributed"](numbered_tensor(shape), *axes) for shape, axes in asked["tensors"]]


def test_each_device_holds_what_the_sharding_says():
    shardings = [sharding for sharding in page_shardings() if sharding.mesh.size == 8]
    assert shardings
    for sharding in shardings:
        (tensor,) = made(sharding)
        assert [part.tolist() for part in ours.unpack(tensor)] == expected(sharding)[0], repr(sharding)
        assert ours.fetch_layout(tensor) == sharding.layout


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan.mesh.size == 8], ids=lambda plan: plan.name)
def test_each_device_holds_what_the_plan_says(plan):
    tensors = made(plan)
    assert [[part.tolist() for part in ours.unpack(tensor)] for tensor in tensors] == expected(plan)
    assert [tensor.dtype.as_numpy_dtype for tensor in tensors] == [np.float32] * len(tensors)


@pytest.mark.drill_all
def test_a_program_of_its_own_makes_its_own_devices():
    sharding = next(each for each in page_shardings() if each.mesh.sizes == (2, 3) and each.copies == 1)
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=program(sharding, "TensorFlow")["code"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == expected(sharding)[0]
