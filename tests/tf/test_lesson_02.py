"""What lesson 02 says of TensorFlow, and what its exercises take for granted."""

import contextlib
import importlib.util
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib import collectives, explain, shard, to_numpy
from course_lib.combining import no_combining
from course_lib.dtensor import tf
from course_lib.pictures.communication_text import verdict

ROOT = Path(__file__).parents[2]
MERGING = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"


def mesh(*sizes):
    return dtensor.create_mesh(list(zip("xyz", sizes, strict=False)), device_type="CPU")


LINE, GRID, CUBE = mesh(8), mesh(4, 2), mesh(2, 2, 2)


def over(place, *entries):
    return dtensor.Layout([dtensor.UNSHARDED if entry == "." else entry for entry in entries], place)


def filled(layout, *shape):
    return shard(np.arange(np.prod(shape), dtype="float32").reshape(shape) % 7, layout)


@pytest.fixture(scope="module")
def program():
    """The plain program, which may not make its devices in a process that has some."""
    source = (ROOT / "notebooks/plain/02_collectives.py").read_text()
    spec = importlib.util.spec_from_loader("collectives_program", loader=None)
    module = importlib.util.module_from_spec(spec)
    lines = [line for line in source.splitlines() if not line.startswith(("cpu = ", "tf.config."))]
    exec(compile("\n".join(lines), "02_collectives.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("place", [LINE, GRID, CUBE], ids=["8", "4x2", "2x2x2"])
def test_the_ten_lines_find_what_collectives_finds(program, place):
    entries = [".", *place.dim_names]
    specs = [pair for pair in itertools.product(entries, repeat=2) if pair[0] != pair[1] or pair[0] == "."]
    for source, target in list(itertools.product(specs, specs))[1::7]:
        matrix, layout = filled(over(place, *source), 16, 16), over(place, *target)

        def moved_and_summed(matrix, layout=layout):
            return tf.reduce_sum(dtensor.relayout(matrix, layout)), tf.reduce_sum(matrix, axis=0)

        with no_combining():
            found = program.collectives_that_ran(place, moved_and_summed, matrix)
        ran = collectives(moved_and_summed, matrix)
        assert found == [(str(each.kind), each.mesh_dims, each.payload_bytes) for each in ran]


def test_the_program_finds_only_what_its_own_function_ran(program):
    left, right = filled(over(GRID, "x", "y"), 16, 16), filled(over(GRID, "y", "."), 16, 16)
    to_numpy(tf.matmul(left, right))
    assert program.collectives_that_ran(GRID, lambda tensor: tensor + 1.0, left) == []
    assert program.collectives_that_ran(GRID, tf.matmul, left, right) == [("all-reduce", ("y",), 256)]


def test_the_program_reads_a_mesh_without_the_first_device(program):
    place = dtensor.create_mesh([("x", 4)], devices=[f"CPU:{device_id}" for device_id in range(2, 6)])
    tensor = filled(over(place, "x", "."), 4, 4)
    found = program.collectives_that_ran(place, lambda tensor: tf.reduce_sum(tensor, 0), tensor)
    assert found == [("all-reduce", ("x",), 16)]


def test_the_lesson_and_the_program_are_the_same_code(program):
    lesson = (ROOT / "lessons/lesson_02_communication/lesson.py").read_text()
    source = (ROOT / "notebooks/plain/02_collectives.py").read_text()
    for name in ("graphs_that_ran", "mesh_dims", "collectives_that_ran", "two_sums"):
        assert function_lines(lesson, name) == function_lines(source, name), name


def function_lines(source, name):
    _before, _def, after = source.partition(f"def {name}(")
    lines = itertools.takewhile(lambda line: not line or line.startswith(" "), after.splitlines()[1:])
    return [line for line in lines if line and not line.lstrip().startswith('"""')]


@pytest.mark.parametrize(
    ("left", "right", "ran"),
    [
        ("x. 8 8", ".. 8 8", []),
        (".x 8 8", "x. 8 8", ["all-reduce over x, 256 bytes"]),
        (".x 8 64", ".. 64 8", ["all-reduce over x, 256 bytes"]),
        ("x. 8 8", "x. 8 8", ["all-reduce over x, 256 bytes"]),  # in place of an all-gather
        ("x. 16 16", ".x 16 16", ["all-reduce over x, 1024 bytes"] * 2),
    ],
)
def test_what_a_product_costs(left, right, ran):
    factors = []
    for entries, *shape in (left.split(), right.split()):
        factors.append(filled(over(LINE, *entries), *map(int, shape)))
    assert list(map(str, collectives(tf.matmul, *factors))) == ran
    assert explain(tf.matmul, *factors).agrees


def test_the_picture_says_that_cpus_replace_a_gather():
    factor = filled(over(LINE, "x", "."), 8, 8)
    seen = verdict(explain(tf.matmul, factor, factor))
    assert "But for the replacement on CPUs, TensorFlow ran what was predicted." in seen


def test_a_mesh_dimension_in_each_factor_is_refused_and_a_relayout_repairs_it():
    left, right = filled(over(GRID, ".", "y"), 8, 8), filled(over(GRID, "x", "."), 8, 8)
    for _try in range(2):
        with pytest.raises(tf.errors.UnknownError, match="Contracting dimension for matmul"):
            tf.function(tf.matmul)(left, right)
    with contextlib.suppress(tf.errors.UnknownError):
        tf.matmul(left, right)
    with pytest.raises(tf.errors.UnknownError, match="divisible"):
        tf.matmul(left, right)
    product = tf.matmul(left, dtensor.relayout(right, over(GRID, "y", ".")))
    assert np.array_equal(to_numpy(product), to_numpy(left) @ to_numpy(right))


@pytest.mark.parametrize(
    ("sizes", "payload"), [((1, 1, 1), 4096), ((512, 512), 4096), ((512, 513), 8192), ((256,) * 3, 4096)]
)
def test_merged_all_reduces_are_padded_once(program, sizes, payload, monkeypatch):
    monkeypatch.delenv(MERGING, raising=False)

    def sums(*tensors):
        return [tf.reduce_sum(tensor, axis=0) for tensor in tensors]

    tensors = [filled(over(LINE, "x", "."), 8, size) for size in sizes]
    assert program.collectives_that_ran(LINE, sums, *tensors) == [("all-reduce", ("x",), payload)]
    assert MERGING not in os.environ


def test_a_reader_changes_what_a_product_costs():
    layout = over(LINE, ".", "x")
    factors = filled(over(LINE, "x", "."), 16, 16), filled(layout, 16, 16)

    def in_columns(left, right):
        return dtensor.relayout(tf.matmul(left, right), layout)

    assert len(collectives(tf.matmul, *factors)) == 2
    assert len(collectives(in_columns, *factors)) == 1
    right = to_numpy(factors[0]) @ to_numpy(factors[1])
    assert np.array_equal(to_numpy(tf.function(in_columns)(*factors)), right)


def test_a_way_round_sends_an_eighth():
    matrix = filled(over(GRID, ".", "x"), 16, 16)

    def round_about(matrix):
        return dtensor.relayout(dtensor.relayout(matrix, over(GRID, "x", ".")), over(GRID, "x", "y"))

    (direct,) = collectives(dtensor.relayout, matrix, over(GRID, "x", "y"))
    (exchange,) = collectives(round_about, matrix)
    assert (str(direct), float(direct.bytes_sent)) == ("all-reduce over x, 1024 bytes", 1536)
    assert (str(exchange), float(exchange.bytes_sent)) == ("all-to-all over x, 256 bytes", 192)


@pytest.mark.parametrize(
    ("sizes", "source", "target", "num_right"),
    [
        ((2, 2, 2), ["z", "x", "."], ["y", ".", "x"], 4),
        ((2,), [".", "x", ".", "."], [".", ".", "x", "."], 4),
        ((2,), [".", "x", "."], [".", ".", "x"], 8),
    ],
)
def test_some_relayouts_are_wrong_in_silence_and_right_by_way_of_the_replicated_layout(
    sizes, source, target, num_right
):
    devices = [f"CPU:{device_id}" for device_id in range(2 ** len(sizes))]
    place = dtensor.create_mesh(list(zip("xyz", sizes, strict=False)), devices=devices)
    array = np.arange(2.0 ** len(source)).reshape([2] * len(source))
    tensor, layout = shard(array, over(place, *source)), over(place, *target)
    directly = dtensor.relayout(tensor, layout)
    assert dtensor.fetch_layout(directly) == layout
    assert np.sum(to_numpy(directly) == array) == num_right
    by_way = dtensor.relayout(dtensor.relayout(tensor, over(place, *["."] * array.ndim)), layout)
    assert np.array_equal(to_numpy(by_way), array)
    variable = dtensor.DVariable(shard(array * 0, layout))
    variable.assign(tensor)
    assert np.sum(to_numpy(variable) == array) == num_right


def test_five_of_six_moves_among_the_last_three_of_four_axes_are_wrong():
    place = dtensor.create_mesh([("x", 2)], devices=["CPU:0", "CPU:1"])
    array = np.arange(16, dtype="float32").reshape([2] * 4)
    splits = [over(place, *("x" if at == axis else "." for at in range(4))) for axis in range(4)]
    wrong = []
    for source, target in itertools.permutations(range(4), 2):
        moved = dtensor.relayout(shard(array, splits[source]), splits[target])
        if not np.array_equal(to_numpy(moved), array):
            wrong.append((source, target))
    assert len(wrong) == 5
    assert all(0 not in pair for pair in wrong)


def test_a_relayout_of_three_axes_forgets_a_move():
    eight = np.arange(8, dtype="float32").reshape(2, 2, 2)
    tensor = shard(eight, over(CUBE, "z", "x", "."))
    (ran,) = collectives(dtensor.relayout, tensor, over(CUBE, "y", ".", "x"))
    assert (str(ran.kind), ran.mesh_dims) == ("all-to-all", ("x",))
