"""The rule of `transformer_block` as its cells have it, beside the library's; its numbers."""

import math

import pytest

from course_lib import MeshSpec, Plan
from lessons.scale.networks import transformer
from tests.course import COURSE, from_lesson

attention_picture = from_lesson("transformer_block.attention_picture", "attention_picture")

CELLS = ("letters", "axes", "exercise-added", "by-hand", "operations", "elements", "all-reduces", "large")


@pytest.fixture(scope="module")
def cells():
    """The names that the cells define; the exercise has its solution."""
    sources = {cell.cell_id: cell.source for cell in COURSE.lesson("transformer_block").cells}
    names = {"yours_or_ours": lambda _exercise, yours: yours}
    for name in CELLS:
        exec(sources[name], names)
    return names


@pytest.mark.parametrize(("data", "model"), [(4, 2), (2, 4)])
def test_the_cells_tell_all_that_the_library_tells(cells, data, model):
    network = transformer(sequence=10, features=32, heads=4, vocabulary=12, hidden=128)
    mesh = MeshSpec([("batch", data), ("model", model)])
    plan = Plan("", mesh, {"batch": "batch", "heads": "model", "hidden": "model"})
    library = [each.collective for each in network.exchanges(plan, batch_size=32)]
    found = cells["all_reduces"](cells["BLOCK"] + cells["AROUND"], cells["sizes"], dict(mesh.dims))
    told = [(dim, 4 * numbers) for (_tensor, dim), numbers in found.items()]
    assert sorted([*told, ("batch", 4)]) == sorted(
        (each.mesh_dims[0], each.payload_bytes) for each in library
    )


def test_the_opening_has_the_numbers_of_a_large_block(cells):
    weights = {name for _first, name, _result, _how in cells["BLOCK"]} & cells["axes"].keys()
    numbers = (math.prod(cells["large"][axis] for axis in cells["axes"][name]) for name in weights)
    gigabytes = 80 * 2 * sum(numbers) / 1e9
    assert (round(gigabytes), round(gigabytes / 8)) == (129, 16)
    assert round(2 * 7 / 8 * cells["in_all"]["model"] / 1e9) == 75


def test_the_picture_of_attention_says_what_a_token_receives():
    # exp of 0, 3, 1 and 2, the products 0, 6, 2 and 4 through the root of four numbers, by their sum
    assert "weights for drank: 3 % | 64 % | 9 % | 24 %" in attention_picture().text
    assert "drank receives 0.3 6.4 0.9 2.4" in attention_picture().text
