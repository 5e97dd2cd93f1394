"""What lesson 01 says of TensorFlow, held against NumPy."""

import ast
import itertools
import subprocess
import sys

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib import show
from course_lib.dtensor import tf
from course_lib.errors import outcome
from course_lib.exercises.checks import Status, check
from lessons.lesson_01_mesh_and_layout.checks import _cut as right_cut
from tests.course import COURSE

FREE = dtensor.UNSHARDED
WHOLE = np.arange(24, dtype="float32").reshape(6, 4)


@pytest.fixture(scope="module")
def lesson():
    """The functions that the lesson shows, and its solution of the exercise."""
    cells = {
        cell.cell_id: cell.source for one in COURSE.lessons(("01_mesh_and_layout",)) for cell in one.cells
    }
    names = {"tf": tf, "np": np, "dtensor": dtensor}
    exec(cells["exercise-cut"], names)
    exec(cells["join"].partition("\n\n\nprint")[0], names)
    exec(cells["explorer"].partition("\n\n\nexplorer")[0], names)
    names["program"] = cells["ends"]
    return names


@pytest.fixture(scope="module")
def mesh():
    return dtensor.create_mesh([("x", 3), ("y", 2)], devices=[f"CPU:{device_id}" for device_id in range(6)])


def layouts(mesh, rank):
    entries = [*mesh.dim_names, *[FREE] * rank]
    return [
        dtensor.Layout(list(chosen), mesh) for chosen in sorted(set(itertools.permutations(entries, rank)))
    ]


@pytest.mark.parametrize("dims", [[("a", 8)], [("a", 4), ("b", 2)], [("a", 2), ("b", 2), ("c", 2)]])
def test_what_the_lesson_cuts_and_packs_is_what_copy_to_mesh_makes_and_joins_again(lesson, dims):
    grid = dtensor.create_mesh(dims, device_type="CPU")
    for rank in (1, 2, 3):
        array = np.arange(8**rank, dtype="float32").reshape([8] * rank)
        for layout in layouts(grid, rank):
            packed = dtensor.pack(lesson["cut"](array, layout), layout)
            copied = dtensor.copy_to_mesh(array, layout)
            for one, other in zip(dtensor.unpack(packed), dtensor.unpack(copied), strict=True):
                assert np.array_equal(one, other)
            assert np.array_equal(lesson["join"](packed), array)


def test_the_explorer_is_given_what_devices_really_hold(lesson):
    square = dtensor.create_mesh([("x", 2), ("y", 2)], devices=[f"CPU:{device_id}" for device_id in range(4)])
    choice = show(dtensor.Layout(["y", FREE], square), (4, 6))
    array = np.arange(24).reshape(4, 6)
    expected = right_cut(array, choice.layout)
    for one, other in zip(lesson["observe"](choice), expected, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("dims", "num_rows"), [([("batch", 4), ("model", 2)], 12), ([("model", 2), ("batch", 4)], 24)]
)
def test_cutting_by_the_shape_of_the_mesh_loses_rows_on_some_meshes(dims, num_rows):
    grid = dtensor.create_mesh(dims)
    layout = dtensor.Layout(["model", FREE], grid)
    parts = tf.split(tf.ones([24, 4]), layout.shape[0], axis=0)
    packed = dtensor.pack([parts[place["model"]] for place in grid.local_device_locations()], layout)
    assert packed.shape[0] == num_rows


def test_unlike_replicas_give_one_tensor_three_sums_and_numpy_reads_the_first(mesh):
    unlike = [tf.fill([6, 2], float(device_id)) for device_id in range(6)]
    total = tf.reduce_sum(dtensor.pack(unlike, dtensor.Layout([FREE, "y"], mesh)))
    assert [int(part) for part in dtensor.unpack(total)] == [12, 12, 60, 60, 108, 108]
    assert total.numpy() == 12


@pytest.mark.parametrize("turn", [np.s_[::-1], np.s_[::-2]])
def test_a_slice_backwards_over_a_split_axis_is_wrong_in_silence(lesson, mesh, turn):
    rows = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(["x", FREE], mesh))
    for function in (lambda tensor: tensor[turn], tf.function(lambda tensor: tensor[turn])):
        assert (lesson["join"](function(rows)) != WHOLE[turn]).any()
    assert np.array_equal(lesson["join"](rows[:, turn]), WHOLE[:, turn])
    assert np.array_equal(lesson["join"](tf.gather(rows, [5, 4, 3, 2, 1, 0])), WHOLE[::-1])


def test_random_numbers_of_one_seed_depend_on_the_layout(lesson, mesh):
    draw, ordinary = tf.function(tf.random.stateless_normal), tf.random.stateless_normal([6, 4], seed=[1, 2])
    for entries, num_alike in (([FREE, FREE], 24), (["x", FREE], 0)):
        layout = dtensor.Layout(entries, mesh)
        drawn = dtensor.call_with_layout(draw, layout, shape=[6, 4], seed=[1, 2])
        assert np.sum(lesson["join"](drawn) == ordinary.numpy()) == num_alike


def test_a_variable_keeps_its_layout_and_takes_no_ordinary_array(mesh):
    rows = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(["x", FREE], mesh))
    columns = dtensor.copy_to_mesh(WHOLE, dtensor.Layout([FREE, "y"], mesh))
    variable = dtensor.DVariable(rows)
    variable.assign(columns + 100.0)
    assert dtensor.fetch_layout(variable) == dtensor.fetch_layout(rows)
    assert "regular tensor" in outcome(variable.assign, WHOLE)
    assert "regular tensor" in outcome(lambda: columns + WHOLE)


def test_a_relayout_makes_192_bytes_288(mesh):
    rows = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(["x", FREE], mesh))
    columns = dtensor.relayout(rows, dtensor.Layout([FREE, "y"], mesh))
    held = [sum(part.numpy().nbytes for part in dtensor.unpack(each)) for each in (rows, columns)]
    assert held == [192, 288]


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.drill_all
def test_unlike_number_types_and_no_components_end_a_process(lesson):
    names = {}
    exec(lesson["program"].partition("done = ")[0], names)
    program = names["program"]
    unlike = run(program)
    assert (unlike.stdout, unlike.returncode) == ("float32 + float64 =\n", -11)
    no_components = "\n".join([*program.splitlines()[:5], "dtensor.pack([], layout)"])
    assert run(no_components).returncode < 0
    assert "np.ones(4), layout" in program
    alike = run(program.replace("np.ones(4), layout", "np.ones(4, 'float32'), layout"))
    assert alike.returncode == 0
    assert "[2 2 2 2]" in alike.stdout


def test_where_and_boolean_mask_look_at_blocks_only():
    mesh = dtensor.create_mesh([("x", 4)], devices=[f"CPU:{device_id}" for device_id in range(4)])
    numbers = dtensor.copy_to_mesh(np.arange(16, dtype="float32"), dtensor.Layout(["x"], mesh))
    parts = dtensor.unpack(tf.where(numbers > 3))
    assert [part.numpy().ravel().tolist() for part in parts] == [[], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert np.isnan(float(tf.reduce_mean(tf.boolean_mask(numbers, numbers > 3)).numpy()))
    whole_mask = tf.reduce_mean(tf.boolean_mask(numbers, np.arange(16) > 3))
    assert [float(part) for part in dtensor.unpack(whole_mask)] == [9.5] * 4


@pytest.mark.parametrize("specs", [[FREE, FREE], ["x", FREE]])
def test_a_slice_with_a_tensor_as_bound_is_empty_in_silence(mesh, specs):
    whole = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(specs, mesh))
    found = tf.function(lambda tensor, k: tensor[k : k + 3])(whole, tf.constant(1))
    assert found.shape == (3, 4)
    assert {tuple(part.shape) for part in dtensor.unpack(found)} == {(0, 4)}


def test_single_numbers_few_integers_and_a_captured_array_are_taken_but_another_array_is_not(mesh):
    scalar = dtensor.DVariable(dtensor.copy_to_mesh(np.float32(1), dtensor.Layout([], mesh)))
    scalar.assign(5.0)
    assert float(scalar.numpy()) == 5
    rows = dtensor.copy_to_mesh(WHOLE, dtensor.Layout(["x", FREE], mesh))
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor"):
        rows + WHOLE
    numbers = dtensor.copy_to_mesh(np.arange(6), dtensor.Layout(["x"], mesh))
    assert dtensor.unpack(numbers + np.arange(6))[5].numpy().tolist() == [8, 10]
    assert tf.gather(numbers, tf.zeros(19, "int32")).shape == 19
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor"):
        tf.gather(numbers, tf.zeros(20, "int32"))
    captured = tf.function(lambda tensor: tf.reduce_sum(tensor + WHOLE))(rows)
    assert float(captured.numpy()) == 2 * WHOLE.sum()


def test_a_half_written_cut_is_open():
    assert check("01-cut", lambda whole, layout: ...).status is Status.OPEN


def functions(source):
    """What functions do, by name, without what is said of them."""
    found = {each.name: each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)}
    for each in found.values():
        each.body = each.body[1:] if ast.get_docstring(each) else each.body
    return {name: ast.dump(each) for name, each in found.items()}


def test_the_plain_program_cuts_and_joins_as_the_lesson_does():
    shown = {}
    for cell in COURSE.lesson("01_mesh_and_layout").cells:
        if cell.cell_id in ("exercise-cut", "join"):
            shown |= functions(cell.source)
    plain = functions((COURSE.root / "notebooks/plain/01_mesh_and_layout.py").read_text())
    assert {name: plain[name] for name in shown} == shown
    assert shown.keys() == {"cut", "join"}
