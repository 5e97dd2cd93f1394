"""The planner of `how_long` in plain Python, held against published trainings and against the library's."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from course_lib.measured.files import load
from course_lib.specs.cost import MIXED, Recompute, StepCosts
from course_lib.specs.mesh import MeshSpec
from tests.course import from_lesson

predictions = from_lesson("how_long.measured_steps", "predictions")
transformer = from_lesson("how_long.networks", "transformer")
FITTED_A100 = from_lesson("how_long.published", "FITTED_A100")

PROGRAM = Path(__file__).parents[2] / "notebooks/plain/how_long.py"
LETTERS = {"b": "batch", "h": "heads", "f": "hidden", "v": "vocabulary"}


def planner():
    tree = ast.parse(PROGRAM.read_text())
    tree.body = tree.body[:-1]  # without what it prints
    names: dict[str, object] = {}
    exec(compile(tree, str(PROGRAM), "exec"), names)
    return names


def test_it_is_within_12_percent_of_what_was_published():
    """Narayanan et al. 2021, Table 1: the seconds that follow from its TFLOP/s."""
    for heads, features, blocks, model, examples, microbatches, seconds in (
        (24, 2304, 24, 1, 512, 1, 3.53),
        (32, 3072, 30, 2, 512, 1, 3.70),
        (32, 4096, 36, 4, 512, 1, 3.70),
        (48, 6144, 40, 8, 1024, 4, 9.40),
    ):
        names = planner()
        sizes = {"b": examples, "d": features, "h": heads, "k": features // heads, "f": 4 * features}
        names["SIZES"] |= sizes
        names["PRODUCTS"] = [(*row, blocks if times > 1 else 1) for *row, times in names["PRODUCTS"]]
        names |= {"BLOCKS": blocks, "MICROBATCHES": microbatches}
        splits = {"b": "batch", **(dict.fromkeys("hfv", "model") if model > 1 else {})}
        found = names["cost"](splits, {"batch": 32, "model": model})[0]
        assert found == pytest.approx(seconds, rel=0.12), features


def test_it_finds_about_the_times_and_the_memory_of_the_library():
    network = transformer(40, sequence=2048, features=6144, heads=48, vocabulary=51200)
    training = replace(MIXED, microbatches=4, recompute=Recompute.FULL)
    ratios = []
    for seconds, num_bytes, sizes, axes in planner()["plans"](256):
        mesh = MeshSpec([(name, size) for name, size in sizes.items() if size > 1])
        splits = {LETTERS[axis]: "model" for axis in axes}
        splits |= {"batch": "batch"} if "batch" in mesh.names else {}
        cost = StepCosts(network, splits).cost(mesh, 1024, FITTED_A100, training)
        ratios.append((seconds / cost.seconds, num_bytes / cost.total_bytes))
    assert len(ratios) == 41
    assert min(min(ratios)) > 0.8, ratios
    assert max(map(max, ratios)) < 1.2


def test_steps_here_are_predicted_as_the_lesson_says():
    ratios = [seconds / each.seconds for each, seconds in predictions(load("how_long-steps").steps)]
    assert 0.915 < min(ratios) < max(ratios) < 1.205
