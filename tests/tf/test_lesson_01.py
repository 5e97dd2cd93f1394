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


@pytest.fixture(scope="module")
def mesh():
    return create_mesh(MESH)


def variable(value, mesh):
    """A variable with the shape and dtype of a value, all zero, its first axis split if that divides."""
    array = np.asarray(value)
    sharded = array.ndim and array.shape[0] % 3 == 0
    layout = LayoutSpec(["x" if sharded else UNSHARDED, *[UNSHARDED] * (array.ndim - 1)][: array.ndim], MESH)
    return dtensor.DVariable(pack(np.zeros_like(array), layout, mesh))


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
