"""The predicted collectives of a training step are those of the step that the trainer runs."""

import json
import subprocess
import sys

import pytest

import course_lib
from course_lib.specs import step_communication
from course_lib.specs.plan import data_parallel, model_parallel, spatial_parallel
from tests.tf import step_runs
from tests.tf.plan_runs import mesh_of

course_lib.start_tensorflow()
from course_lib import models  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")
SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}


def test_the_layers_are_those_that_the_model_declares():
    assert models.MLP.spec.layers == step_communication.LAYERS
    assert models.MLP.spec.normalised == step_communication.NORMALISED


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (data_parallel(8), "batch 3072, batch 384, batch 384, batch 8, batch 230400, batch 192"),
        (
            model_parallel(4, 2),
            "batch 768, model 128, batch 192, batch 192, batch 8, batch 115200, batch 96",
        ),
        (
            spatial_parallel(),
            "feature 3072, batch 384, model 256, batch 192, batch 192, batch 8, batch 57600, batch 96",
        ),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_the_three_schemes_exactly(plan, expected):
    """All are all-reduces; the sums of the loss and of the right answers may come at any time."""
    scalar = "all-reduce over batch, 4 bytes"
    for found in step_runs.told_and_seen(plan, models.MLP, SIZES):
        assert found.count(scalar) == 2
        rest = [each for each in found if each != scalar]
        assert rest == ["all-reduce over {}, {} bytes".format(*each.split()) for each in expected.split(", ")]


@pytest.mark.parametrize(
    ("mesh", "count"),
    [("4x2", 3), *(pytest.param(*every, marks=pytest.mark.drill_all) for every in (("8", 8), ("4x2", 41)))],
)
def test_other_plans_too(mesh, count):
    assert step_runs.report(mesh_of(mesh), count) == {"plans": count, "disagreements": []}


@pytest.mark.drill_all
@pytest.mark.parametrize(("mesh", "count"), [("2x2x2", 40), ("4x3", 20)])
def test_plans_of_more_meshes(mesh, count):
    command = [sys.executable, "-m", "tests.tf.step_runs", mesh, str(count)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    assert found == {"plans": count, "disagreements": []}
