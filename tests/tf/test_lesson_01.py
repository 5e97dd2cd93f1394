"""What lesson 01 says of TensorFlow, and cannot show in a few lines."""

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.dtensor import (
    create_mesh,
    fetch_layout,
    pack,
    pack_components,
    relayout,
    tf,
    to_layout,
    to_numpy,
    unpack,
)
from course_lib.errors import CourseError
from course_lib.exercises.checks import check
from lessons.lesson_01_mesh_and_layout.explorer import numbered_tensor

MESH = MeshSpec([("x", 3), ("y", 2)])
ROWS, COLUMNS = LayoutSpec(["x", UNSHARDED], MESH), LayoutSpec([UNSHARDED, "y"], MESH)
BLOCKS, WHOLE = LayoutSpec(["x", "y"], MESH), LayoutSpec.replicated(MESH, 2)
NUMBERS = numbered_tensor((6, 4))


@pytest.fixture(scope="module")
def mesh():
    return create_mesh(MESH)


def variable(value, mesh):
    """A variable with the shape and dtype of a value, all zero, its first axis split if that divides."""
    array = np.asarray(value)
    sharded = array.ndim and array.shape[0] % 3 == 0
    layout = LayoutSpec(["x" if sharded else UNSHARDED, *[UNSHARDED] * (array.ndim - 1)][: array.ndim], MESH)
    return dtensor.DVariable(pack(np.zeros_like(array), layout, mesh))


TAKEN = [
    *[np.array(2, dtype) for dtype in ("float32", "float64", "int8", "int32", "int64", "bool")],
    *[np.arange(count, dtype=dtype) for count in (1, 18, 19) for dtype in ("int32", "int64")],
    np.arange(18, dtype="int32").reshape(3, 6),
]
REFUSED = [
    *[np.ones(shape, "float32") for shape in ((1,), (1, 1), (6, 4))],
    *[np.arange(count, dtype=dtype) for count in (20, 21) for dtype in ("int32", "int64")],
    *[np.ones(1, dtype) for dtype in ("float64", "int8", "uint8", "bool")],
]


@pytest.mark.parametrize("value", TAKEN, ids=lambda value: f"{value.dtype}{value.shape}")
def test_ordinary_values_that_a_variable_takes(value, mesh):
    changed = variable(value, mesh)
    changed.assign(tf.constant(value))
    assert (to_numpy(changed) == value).all()


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{value.dtype}{value.shape}")
def test_ordinary_values_that_a_variable_refuses(value, mesh):
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor for input 1"):
        variable(value, mesh).assign(tf.constant(value))


def test_a_variable_takes_text_of_any_length(mesh):
    layout = dtensor.Layout(["x"], mesh)
    changed = dtensor.DVariable(dtensor.pack([tf.fill([10], "")] * 6, layout))
    changed.assign(tf.as_string(tf.range(30)))
    assert [part[0] for part in unpack(changed)] == [b"0", b"0", b"10", b"10", b"20", b"20"]


def test_operations_follow_the_rule_of_variables(mesh):
    rows = pack(NUMBERS, ROWS, mesh)
    assert (to_numpy(rows + 1.0) == NUMBERS + 1).all()
    with pytest.raises(tf.errors.UnimplementedError, match="but was expecting a DTensor"):
        rows + tf.constant(NUMBERS)
    with pytest.raises(tf.errors.UnimplementedError, match="but was expecting a DTensor"):
        rows + tf.ones([1])
    whole_numbers = pack(NUMBERS.astype("int32"), ROWS, mesh)
    assert (to_numpy(whole_numbers + tf.range(4)) == NUMBERS + np.arange(4)).all()


def test_arguments_of_a_function_follow_the_rule_of_variables(mesh):
    add = tf.function(lambda one, other: one + other)
    rows, whole_numbers = pack(NUMBERS, ROWS, mesh), pack(NUMBERS.astype("int32"), ROWS, mesh)
    assert (to_numpy(add(rows, tf.constant(1.0))) == NUMBERS + 1).all()
    assert (to_numpy(add(whole_numbers, tf.range(4))) == NUMBERS + np.arange(4)).all()
    for tensor, value in ((rows, NUMBERS), (rows, np.ones(1, "float32")), (whole_numbers, NUMBERS)):
        with pytest.raises(tf.errors.UnimplementedError, match="but was expecting a DTensor"):
            add(tensor, tf.constant(value, tensor.dtype))


def test_only_a_replicated_tensor_can_be_read(mesh):
    assert (pack(NUMBERS, WHOLE, mesh).numpy() == NUMBERS).all()
    with pytest.raises(tf.errors.UnimplementedError, match="non-replicated DTensor is not supported"):
        pack(NUMBERS, ROWS, mesh).numpy()


def test_some_operations_collect_the_parts_unasked(mesh):
    summed = tf.cumsum(pack(NUMBERS, ROWS, mesh), axis=0)
    assert fetch_layout(summed) == WHOLE
    assert (summed.numpy() == NUMBERS.cumsum(axis=0)).all()


def drawn(layout, mesh):
    draw = tf.function(tf.random.stateless_normal)
    return dtensor.call_with_layout(draw, to_layout(layout, mesh), shape=[6, 4], seed=[1, 2])


def test_random_numbers_begin_alike_on_every_device_of_the_first_column(mesh):
    rows, blocks = (unpack(drawn(layout, mesh)) for layout in (ROWS, BLOCKS))
    for device_id in (0, 2, 4):
        assert (rows[device_id].ravel()[:4] == blocks[device_id].ravel()).all()
        assert (rows[device_id + 1].ravel()[:4] != blocks[device_id + 1].ravel()).all()
    agreeing = np.argwhere(to_numpy(drawn(BLOCKS, mesh)) == to_numpy(drawn(ROWS, mesh))).tolist()
    assert agreeing == [[row, column] for row in (0, 2, 4) for column in (0, 1)]
    assert (to_numpy(drawn(ROWS, mesh)) == to_numpy(drawn(ROWS, mesh))).all()


def test_the_position_of_the_device_chooses_the_random_numbers_not_that_of_its_block():
    square = MeshSpec([("x", 2), ("y", 2)])
    layouts = [LayoutSpec(entries, square) for entries in (["x", "y"], ["y", "x"])]
    one, other = (unpack(drawn(layout, create_mesh(square))) for layout in layouts)
    assert layouts[0].block(1) != layouts[1].block(1)
    assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
    assert not np.array_equal(one[1].ravel()[:2], one[2].ravel()[:2])


def test_replicated_random_numbers_are_those_of_one_device(mesh):
    ordinary = tf.random.stateless_normal([6, 4], seed=[1, 2]).numpy()
    assert (to_numpy(drawn(WHOLE, mesh)) == ordinary).all()
    for layout in (ROWS, BLOCKS):
        assert unpack(drawn(layout, mesh))[0][0, 0] != ordinary[0, 0]
    for layout in (ROWS, BLOCKS):
        moved = dtensor.relayout(drawn(WHOLE, mesh), to_layout(layout, mesh))
        assert (to_numpy(moved) == ordinary).all()


def test_drawing_needs_a_function(mesh):
    draw = tf.random.stateless_normal
    with pytest.raises(tf.errors.UnknownError, match="requires matching rank") as caught:
        dtensor.call_with_layout(draw, to_layout(ROWS, mesh), shape=[6, 4], seed=[1, 2])
    assert "[Op:StatelessRandomGetKeyCounter]" in str(caught.value)  # which makes a vector of the seed
    assert fetch_layout(dtensor.call_with_layout(tf.zeros, to_layout(ROWS, mesh), shape=[6, 4])) == ROWS


def test_a_relayout_of_three_axes_is_wrong_in_silence_and_the_courses_is_right():
    cube, numbers = MeshSpec([("batch", 2), ("feature", 2), ("model", 2)]), numbered_tensor((2, 2, 2))
    mesh, turned = create_mesh(cube), LayoutSpec(["feature", UNSHARDED, "batch"], cube)
    before = pack(numbers, LayoutSpec(["model", "batch", UNSHARDED], cube), mesh)
    wrong = dtensor.relayout(before, to_layout(turned, mesh))
    assert fetch_layout(wrong) == turned
    assert unpack(wrong)[1].ravel().tolist() == [4, 6]
    right = relayout(before, turned, mesh)
    assert (
        unpack(right)[1].ravel().tolist() == turned.of((2, 2, 2)).split(numbers)[1].ravel().tolist() == [0, 2]
    )


@pytest.mark.parametrize("dims", [[("x", 2)], [("x", 2), ("y", 2)]], ids=["one dimension", "two"])
def test_a_relayout_of_four_axes_is_wrong_in_silence_on_smaller_meshes_too(dims):
    spec, numbers = MeshSpec(dims), numbered_tensor((2, 2, 2, 2))
    mesh, last = create_mesh(spec), LayoutSpec([UNSHARDED, UNSHARDED, UNSHARDED, "x"], spec)
    turned = LayoutSpec([UNSHARDED, UNSHARDED, "x", UNSHARDED], spec)
    moved = unpack(dtensor.relayout(pack(numbers, last, mesh), to_layout(turned, mesh)))
    expected = turned.of((2, 2, 2, 2)).split(numbers)
    assert not all(np.array_equal(*pair) for pair in zip(moved, expected, strict=True))


def test_only_a_mesh_in_use_shows_that_a_name_is_repeated():
    twice = dtensor.create_mesh([("x", 2), ("x", 2)], devices=[f"CPU:{device_id}" for device_id in range(4)])
    layout = dtensor.Layout(["x"], twice)
    with pytest.raises(ValueError, match="repeated mesh dimension"):
        dtensor.pack([tf.ones([1])] * 4, layout)


def test_a_variable_takes_new_values_and_keeps_its_layout(mesh):
    variable = dtensor.DVariable(pack(NUMBERS, ROWS, mesh))
    variable.assign(pack(NUMBERS, COLUMNS, mesh) + 100.0)
    assert fetch_layout(variable) == ROWS
    assert (unpack(variable)[5] == NUMBERS[4:] + 100).all()


def test_components_in_the_wrong_order_pass(mesh):
    components = [tf.fill([2, 4], float(at)) for at in (2, 2, 1, 1, 0, 0)]
    packed = to_numpy(dtensor.pack(components, to_layout(ROWS, mesh)))
    assert packed[:, 0].tolist() == [2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("dims", "num_rows"), [([("batch", 4), ("model", 2)], 12), ([("model", 2), ("batch", 4)], 24)]
)
def test_cutting_by_the_shape_of_the_mesh_loses_rows_on_some_meshes(dims, num_rows):
    grid = dtensor.create_mesh(dims)
    layout = dtensor.Layout(["model", dtensor.UNSHARDED], grid)
    parts = tf.split(tf.ones([24, 4]), layout.shape[0], axis=0)
    packed = dtensor.pack([parts[place["model"]] for place in grid.local_device_locations()], layout)
    assert packed.shape[0] == num_rows


def test_unlike_replicas_give_one_tensor_three_sums(mesh):
    unlike = [np.full((6, 2), float(device_id), np.float32) for device_id in range(6)]
    total = tf.reduce_sum(dtensor.pack([tf.constant(part) for part in unlike], to_layout(COLUMNS, mesh)))
    assert [int(part) for part in unpack(total)] == [12, 12, 60, 60, 108, 108]
    assert total.numpy() == 12
    with pytest.raises(CourseError, match="replica"):
        pack_components(unlike, COLUMNS, mesh)


def test_the_bytes_that_device_3_misses_are_unlike_those_before_and_after_and_on_both():
    mesh, numbers = MeshSpec([("x", 4), ("y", 2)]), numbered_tensor((8, 4))
    splits = (LayoutSpec(["x", UNSHARDED], mesh), LayoutSpec([UNSHARDED, "y"], mesh))
    before, after = (set(layout.of((8, 4)).split(numbers)[3].ravel()) for layout in splits)
    assert [len(part) * 4 for part in (after - before, before, after, before & after)] == [48, 32, 64, 16]
    assert check("01-missing-bytes", 48).passed


def test_a_real_layout_answers_an_exercise_about_layouts():
    layout = dtensor.Layout(["batch", dtensor.UNSHARDED], dtensor.create_mesh([("batch", 2), ("model", 4)]))
    assert check("01-four-copies", layout).passed


def tensors(whole, layout):
    """The well-known packer, mended: nested `tf.split`."""
    components = []
    for device_id in range(layout.mesh.size):
        part, place = tf.convert_to_tensor(whole), layout.mesh.coords(device_id)
        for axis, name in enumerate(layout.sharding_specs):
            part = tf.split(part, layout.num_shards(axis), axis=axis)[place.get(name, 0)]
        components.append(part)
    return components


@pytest.mark.parametrize(
    "function", [tensors, tf.function(tensors, autograph=False)], ids=["eager", "traced"]
)
def test_a_split_may_be_written_in_tensorflow(function):
    assert check("01-split", function).passed
