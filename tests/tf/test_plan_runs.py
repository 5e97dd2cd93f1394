"""A plan is accepted exactly when TensorFlow can train the MLP with it, and then trains it rightly."""

import json
import subprocess
import sys

import pytest

from tests.tf import plan_runs

MORE_DEVICES = ("4x3", "12")  # than the eight of this process


def report(mesh: str, count: int) -> dict:
    if mesh not in MORE_DEVICES:
        return plan_runs.report(plan_runs.mesh_of(mesh), count)
    command = [sys.executable, "-m", "tests.tf.plan_runs", mesh, str(count)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


# Seeds of unlike plans: 7 draws one with batch and classes over one mesh dimension, which is accepted.
@pytest.mark.parametrize(("mesh", "seed"), [("4x2", 0), ("2x2x2", 7), ("3x2", 4)])
def test_some_plans_chosen_by_chance_run_exactly_if_they_are_accepted(mesh, seed):
    found = plan_runs.report(plan_runs.mesh_of(mesh), 4, seed)
    assert found["disagreements"] == []
    assert found["accepted"] >= 1
    assert found["refused"] >= 1


@pytest.mark.drill_all
@pytest.mark.parametrize(
    ("mesh", "accepted", "refused"),
    [
        ("8", 8, 8),
        ("4x2", 41, 40),
        ("2x4", 41, 40),
        ("2x2x2", 142, 114),
        ("6", 8, 8),
        ("3x2", 41, 40),
        ("4x3", 41, 40),
    ],
)
def test_every_plan_runs_exactly_if_it_is_accepted(mesh, accepted, refused):
    assert report(mesh, 1000) == {"disagreements": [], "accepted": accepted, "refused": refused}


@pytest.mark.drill_all
def test_on_12_devices_in_a_row_only_the_plan_that_takes_an_all_to_all_is_refused():
    mixed_up = {"batch": "dim_0", "classes": "dim_0"}
    assert report("12", 1000) == {"disagreements": [mixed_up], "accepted": 7, "refused": 9}
