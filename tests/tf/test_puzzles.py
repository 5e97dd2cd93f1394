"""The puzzles on real devices: what a solution holds and sends."""

from functools import partial

import numpy as np
import pytest

from benchmarks.programs import program
from course_lib import MeshSpec
from course_lib.devices import dtensor
from course_lib.devices.graphs import collectives
from lessons.scale.networks import classifier, transformer
from lessons.scale.puzzles.all_puzzles import PUZZLES

pytestmark = pytest.mark.usefixtures("optimized")
MESH = MeshSpec([("x", 4), ("y", 2)])
FACTORS, SMALL = {"A": ["A rows", "A columns"], "B": ["B rows", "B columns"]}, classifier(1_200, 48, 2)
BLOCK = transformer(sequence=16, features=32, heads=4, vocabulary=64, hidden=128)
TOKENS = [(("batch", "sequence"), "int32"), (("batch", "sequence"), "int32"), ((), "float32")]
ROWS = [(("batch", "features"), "float32"), (("batch",), "int32"), ((), "float32")]
SOLUTIONS = {  # of each puzzle: tensors or a network, and what is split
    1: ({"v": ["numbers"]}, {"numbers": "x"}),
    2: ({"M": ["rows", "columns"]}, {"rows": "y", "columns": "x"}),
    3: (FACTORS, {"A rows": "x", "B columns": "y"}),
    4: (FACTORS, {"A columns": "x", "B rows": "x", "B columns": "y"}),
    5: (SMALL, {"features": "y", "hidden": "x"}),
    6: (SMALL, {"batch": "y", "hidden": "x"}),
    7: (classifier(256, 512, 256, 8), {"hidden": "x", "hidden_2": "y"}),
    8: (BLOCK, {"batch": "x", "heads": "y", "hidden": "y"}),
    9: (BLOCK, {"batch": "y", "heads": "x", "hidden": "x", "vocabulary": "x"}),
}


def classified(weights, y):
    for at in range(1, len(weights) // 2 + 1):
        y = y @ weights[f"W{at}"] + weights[f"b{at}"]
    return y


def product(model):
    return model.weights["A"] @ model.weights["B"]


@pytest.mark.parametrize("number", SOLUTIONS)
def test_a_solution_holds_and_sends_what_it_is_said_to(number):
    (given, splits), task = SOLUTIONS[number], PUZZLES[number - 1].task
    names = vars(program("transformer_block"))
    mesh = task.meshes.index(MESH)
    told = task.found({"mesh": mesh, **dict.fromkeys(task.axes, "unsharded"), **splits}).numbers
    variables, sizes = getattr(given, "variables", given), {**getattr(given, "sizes", {}), **task.axes}

    def ones(axes, kind="float32"):
        return np.ones([sizes[axis] for axis in axes], kind)

    def example(axes, kind):
        (layout,) = names["make_layouts"]({"": axes}, splits, mesh).values()
        return names["place"](ones(axes, kind), layout)

    names["values"] = {name: ones(axes) for name, axes in variables.items()}
    mesh = dtensor.create_mesh(MESH)
    model = names["Model"](names["make_layouts"](variables, splits, mesh))
    held = "held" if number < 5 else "variables"
    assert sum(dtensor.unpack(each)[0].nbytes for each in model.variables) == told[held]
    kinds = [] if number < 5 else TOKENS if given is BLOCK else ROWS
    forward = names["logits_of"] if given is BLOCK else classified
    step = partial(names["train_step"], forward) if kinds else product
    examples = [example(*each) for each in kinds]
    seen = collectives(step, model, *examples, mesh=MESH) if number > 2 else []
    assert (len(seen), sum(each.bytes_sent for each in seen)) == (told["collectives"], told["sent"])
