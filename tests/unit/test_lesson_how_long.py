"""The planners of `how_long`, in its cells and in its plain program, against trainings and the library."""

from dataclasses import replace

import pytest

from course_lib.measured.files import load
from course_lib.specs.architecture import Zero
from course_lib.specs.mesh import MeshSpec
from tests.course import COURSE, from_lesson, program

added_up = from_lesson("how_long.checks", "_added_up")
MIXED, Recompute, StepCosts = from_lesson("how_long.cost", "MIXED", "Recompute", "StepCosts")
predictions = from_lesson("how_long.measured_steps", "predictions")
transformer, CLUSTERS = from_lesson("how_long.networks", "transformer", "CLUSTERS")
TENSOR_PARALLEL = from_lesson("how_long.planner", "TENSOR_PARALLEL")
trainings, EFFICIENCY = from_lesson("how_long.published", "trainings", "EFFICIENCY")

CELLS = ("ring", "levels", "products", "sums", "cost")


@pytest.fixture
def cells():
    """The names of the cells from which the lesson's planner is made."""
    (lesson,) = [each for each in COURSE.lessons() if each.topic == "how_long"]
    sources = {cell.cell_id: cell.source for cell in lesson.cells}
    names = {
        "yours_or_ours": lambda _name, _yours: lambda *given: map(set, added_up(*given)),
        "added_up": None,
    }
    for name in CELLS:
        exec(sources[name], names)
    return names


def table():
    """The trainings of Narayanan et al. 2021, Table 1: the seconds of a step, and whole numbers."""
    for each in trainings()[:10]:
        yield each.row.published, {name: int(text) for name, text in each.settings.items() if text.isdigit()}


def test_the_cells_are_within_12_percent_of_what_was_published_without_stages(cells):
    for seconds, run in table():
        if run["stages"] == 1:
            sizes = {"b": run["batch"], "d": run["features"], "h": run["heads"], "f": run["hidden"]}
            cells["NUMBERS"] |= {**sizes, "k": run["features"] // run["heads"]}
            counted = [(*row, run["blocks"] if times > 1 else 1) for *row, times in cells["PRODUCTS"]]
            data = run["devices"] // run["tensor"]
            microbatches = run["batch"] // data // run["microbatch"]
            cells |= {"PRODUCTS": counted, "BLOCKS": run["blocks"], "MICROBATCHES": microbatches}
            splits = {"b": "batch", **(dict.fromkeys("hfv", "model") if run["tensor"] > 1 else {})}
            parts, _bytes = cells["cost"](splits, {"batch": data, "model": run["tensor"]})
            assert sum(parts.values()) == pytest.approx(seconds, rel=0.12)


@pytest.fixture
def plain():
    return program("how_long")


def test_the_plain_program_is_within_20_percent_of_what_was_published(plain):
    for seconds, run in table():
        plain.BLOCKS, plain.WIDTH, plain.HEADS = run["blocks"], run["features"], run["heads"]
        plain.EXAMPLES = run["batch"]
        data = run["devices"] // run["tensor"] // run["stages"]
        found = plain.step_seconds(run["tensor"], run["stages"], data, run["microbatch"], 0)
        assert found == pytest.approx(seconds, rel=0.2)


def test_the_plain_program_has_about_the_times_and_the_memory_of_the_library(plain):
    sizes = {"sequence": plain.SEQUENCE, "features": plain.WIDTH, "heads": plain.HEADS}
    network = transformer(plain.BLOCKS, **sizes, vocabulary=plain.VOCABULARY, dropout=True)
    costs = StepCosts(network, {"batch": "batch", **TENSOR_PARALLEL})
    cluster = replace(CLUSTERS["A100"], device=replace(CLUSTERS["A100"].device, efficiency=EFFICIENCY))
    times, sizes_in_memory = [], []
    for plan in plain.plans(256):
        tensor, stages, data, examples, zero = plan
        mesh = MeshSpec([("stage", stages), ("batch", data), ("model", tensor)])
        microbatches = plain.EXAMPLES // data // examples
        training = replace(MIXED, microbatches=microbatches, recompute=Recompute.FULL, zero=Zero(zero))
        cost = costs.cost(mesh, plain.EXAMPLES, cluster, training)
        times.append(plain.step_seconds(*plan) / cost.seconds)
        sizes_in_memory.append(plain.memory_bytes(*plan) / cost.total_bytes)
    assert len(times) == 390
    assert 0.8 < min(times) < max(times) < 1  # the library counts the way of tensors to memory too,
    assert 0.65 < min(sizes_in_memory) < max(sizes_in_memory) < 1  # and all tensors


def test_steps_here_are_predicted_as_the_lesson_says():
    ratios = [seconds / each.seconds for each, seconds in predictions(load("how_long-steps").steps)]
    assert 0.895 < min(ratios) < max(ratios) < 1.165
