"""What lesson 02 says of TensorFlow, and what its exercises take for granted."""

import numpy as np
import pytest

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec, observed
from course_lib.dtensor import pack, tf
from course_lib.exercises import checks
from course_lib.specs import communication
from course_lib.specs.collectives import require_right

LINE, GRID = MeshSpec([("x", 8)]), MeshSpec([("x", 4), ("y", 2)])


def over(mesh, *entries):
    return LayoutSpec([UNSHARDED if entry == "." else entry for entry in entries], mesh)


def ones(layout, shape):
    return pack(np.ones(shape, "float32"), layout)


def seen(function, *arguments, mesh):
    return list(map(str, observed.collectives(function, *arguments, mesh=mesh)))


def test_the_answers_of_exercise_1_are_what_tensorflow_does():
    (_sum, gather) = answers = checks.find("02-products").right
    products = ((over(GRID, "x", "y"), over(GRID, "y", ".")), (over(GRID, "x", "."), over(GRID, "x", "y")))
    for (left, right), (kind, name, payload) in zip(products, answers, strict=True):
        compared = observed.product(left.of((32, 8)), right.of((8, 4)))
        (predicted,) = compared.predicted.collectives
        assert compared.agrees
        assert (str(predicted.kind), predicted.mesh_dims, predicted.payload_bytes) == (kind, (name,), payload)
    assert list(map(str, compared.observed)) == [f"all-reduce over x, {gather[2]} bytes"]


def test_partial_sums_are_made_even_where_gathering_would_cost_less():
    compared = observed.product(over(LINE, ".", "x").of((64, 8)), over(LINE, ".", ".").of((8, 64)))
    assert compared.agrees
    assert list(map(str, compared.observed)) == ["all-reduce over x, 16384 bytes"]


def test_all_reduces_are_joined_and_padded_only_on_request():
    def two_sums(one, other):
        return tf.reduce_sum(one), tf.reduce_sum(other)

    tensors = ones(over(LINE, "x", "."), (8, 8)), ones(over(LINE, ".", "x"), (8, 8))
    joined = observed.collectives(two_sums, *tensors, mesh=LINE, combine=True)
    assert list(map(str, joined)) == ["all-reduce over x, 4096 bytes"]
    assert seen(two_sums, *tensors, mesh=LINE) == ["all-reduce over x, 4 bytes"] * 2


def test_a_reader_changes_what_a_product_costs():
    rows, columns = over(LINE, "x", "."), over(LINE, ".", "x")
    alone = observed.product(rows.of((16, 16)), columns.of((16, 16)))
    read = observed.product(rows.of((16, 16)), columns.of((16, 16)), columns)
    assert (len(alone.observed), len(read.observed)) == (2, 1)
    assert alone.agrees
    assert read.agrees


def test_a_way_round_saves_the_gather():
    across, target, via = over(GRID, ".", "x"), over(GRID, "x", "y"), over(GRID, "x", ".")
    direct = observed.relayout(across.of((16, 16)), target)
    assert list(map(str, direct.observed)) == ["all-reduce over x, 1024 bytes"]
    legs = observed.relayout(across.of((16, 16)), via), observed.relayout(via.of((16, 16)), target)
    assert [list(map(str, leg.observed)) for leg in legs] == [["all-to-all over x, 256 bytes"], []]


def test_a_matrix_is_not_moved_by_an_all_to_all_among_12_devices():
    line = MeshSpec([("x", 12)])
    predicted = communication.relayout(over(line, "x", ".").of((12, 12)), over(line, ".", "x"))
    with pytest.raises(CourseError, match="all-to-all over 'x', among 12 CPUs"):
        require_right(predicted.collectives, "CPU")
