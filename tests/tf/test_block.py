"""The transformer block of `how_long`: what its step adds up, and that it trains as one device does."""

import numpy as np
import pytest

import course_lib
from benchmarks import programs
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan
from tests.course import from_lesson

transformer = from_lesson("how_long.networks", "transformer")

tf = course_lib.start_tensorflow()

pytestmark = pytest.mark.usefixtures("optimized")
NETWORK = transformer(sequence=4, features=24, heads=12, vocabulary=12, hidden=36)
SIZES = {**NETWORK.sizes, BATCH: 24}
MODEL = {"batch": "batch", "heads": "model", "hidden": "model"}
CASES = [
    ("batch 8", {"batch": "batch"}),
    ("batch 4, model 2", MODEL),
    ("batch 2, model 4", {**MODEL, "vocabulary": "model"}),
    ("batch 2, x 2, y 2", {"batch": "batch", "heads": "x", "hidden": "x", "features": "y"}),
    ("batch 3, model 2", MODEL),
    ("model 6", {"heads": "model", "hidden": "model"}),
]
OFTEN = CASES[1], CASES[3]


def program(splits):
    names = vars(programs.program("transformer_block"))
    names |= {"SIZES": SIZES, "VARIABLES": NETWORK.variables, "SPLITS": splits}
    return names


def values():
    draw = np.random.default_rng(0).normal
    return {
        name: draw(0, 0.2, [SIZES[axis] for axis in axes]).astype("float32")
        for name, axes in NETWORK.variables.items()
    }


@pytest.mark.parametrize(
    ("mesh", "splits"),
    [pytest.param(*case, id=case[0], marks=() if case in OFTEN else pytest.mark.drill_all) for case in CASES],
)
def test_a_step_adds_up_what_is_told_and_is_that_of_one_device(mesh, splits):
    dims = [(name, int(size)) for name, size in (dim.split() for dim in mesh.split(", "))]
    spec, names = MeshSpec(dims), program(splits)
    tokens = np.random.default_rng(1).integers(0, 12, (24, 4)).astype("int32")
    losses, blocks = [], []
    for real in (None, names["dtensor"].create_mesh(dims, devices=[f"CPU:{at}" for at in range(spec.size)])):
        block = names["Block"](values(), real)
        examples = [names["place"](tokens, (BATCH, "sequence"), real) for _each in range(2)]
        if real is not None:
            step = names["train_step"].python_function
            seen = course_lib.collectives(step, block, *examples, tf.constant(0.5))
            told = [each.collective for each in NETWORK.exchanges(Plan("", spec, splits), batch_size=24)]
            assert sorted(map(str, seen)) == sorted(map(str, told))
        losses.append(float(names["train_step"](block, *examples, 0.5)))
        whole = course_lib.to_numpy if real else np.asarray
        blocks.append({name: whole(getattr(block, name)) for name in NETWORK.variables})
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    for name, value in blocks[0].items():
        np.testing.assert_allclose(blocks[1][name], value, atol=2e-6, err_msg=name)
