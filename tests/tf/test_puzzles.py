"""The puzzles of `how_long` on real devices: what a solution holds and sends."""

import pytest

from benchmarks.programs import program
from course_lib import MeshSpec
from course_lib.devices import dtensor
from course_lib.devices.graphs import collectives
from tests.course import from_lesson

classifier, transformer = from_lesson("how_long.networks", "classifier", "transformer")
PUZZLES = from_lesson("how_long.puzzles", "PUZZLES")

tf, pytestmark = dtensor.tf, pytest.mark.usefixtures("optimized")
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


def classified(block, y):
    for at in range(1, len(block.variables) // 2 + 1):
        y = y @ getattr(block, f"W{at}") + getattr(block, f"b{at}")
    return y


@pytest.mark.parametrize("number", SOLUTIONS)
def test_a_solution_holds_and_sends_what_it_is_said_to(number):
    (given, splits), task = SOLUTIONS[number], PUZZLES[number - 1].task
    names = vars(program("transformer_block"))
    told = task.found(MESH, {**dict.fromkeys(task.axes, "unsharded"), **splits}).numbers
    variables, sizes = getattr(given, "variables", given), {**getattr(given, "sizes", {}), **task.axes}
    names |= {"SIZES": sizes, "VARIABLES": variables, "SPLITS": splits}
    values = {name: tf.ones([sizes[axis] for axis in axes]) for name, axes in variables.items()}
    block = names["Block"](values, mesh := dtensor.create_mesh(MESH))
    assert sum(dtensor.unpack(each)[0].nbytes for each in block.variables) == told["held"]
    if given is not BLOCK:
        names["Block"].__call__ = classified
    kinds = [] if number < 5 else TOKENS if given is BLOCK else ROWS
    examples = [names["place"](tf.ones([sizes[a] for a in axes], kind), axes, mesh) for axes, kind in kinds]
    step = names["train_step"].python_function if examples else lambda block: block.A @ block.B
    seen = collectives(step, block, *examples, mesh=MESH) if number > 2 else []
    assert (len(seen), sum(each.bytes_sent for each in seen)) == (told["collectives"], told["sent"])
