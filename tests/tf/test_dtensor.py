"""Specs against the real thing: TensorFlow's own shards, on every mesh of 6 and 8 devices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError, MeshSpec
from course_lib import dtensor as ours
from course_lib.aborts import explaining_aborts
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, all_meshes

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

MESHES = [
    mesh
    for num_devices in (6, 8)
    for names in (("x",), ("x", "y"), ("x", "y", "z"))
    for mesh in all_meshes(num_devices, names)
]
# All of one and two dimensions. Of three, the cube and those of three unlike sizes in some order.
OF_THREE = [(1, 3, 2), (2, 1, 4), (2, 2, 2)]
FIRST_MESHES = [
    mesh if len(mesh.names) < 3 or mesh.sizes in OF_THREE else pytest.param(mesh, marks=pytest.mark.drill_all)
    for mesh in MESHES
]


def layouts(mesh: MeshSpec, num_axes: int) -> list[LayoutSpec]:
    """Returns every layout of a tensor of `num_axes` axes: no mesh dimension on two axes."""
    choices = itertools.product([UNSHARDED, *mesh.names], repeat=num_axes)
    sharded = [(entries, [name for name in entries if name != UNSHARDED]) for entries in choices]
    return [LayoutSpec(entries, mesh) for entries, names in sharded if len(names) == len(set(names))]


def numbered(layout: LayoutSpec, times: int = 1) -> np.ndarray:
    """Returns a tensor that the layout splits evenly, every element another number."""
    shape = [times * layout.num_shards(axis) for axis in range(layout.num_axes)]
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def predicted(value: np.ndarray, layout: LayoutSpec) -> list[np.ndarray]:
    return [value[index] for index in layout.of(value.shape).shards.values()]


def same(first, second) -> bool:
    return all(np.array_equal(*pair) for pair in zip(first, second, strict=True))


@pytest.mark.parametrize("mesh", FIRST_MESHES, ids=str)
def test_what_we_pack_is_what_tensorflow_understands_on_every_layout(mesh):
    real = ours.create_mesh(mesh)
    for num_axes in (1, 2, 3):
        whole_everywhere = ours.to_layout(LayoutSpec.replicated(mesh, num_axes), real)
        for layout in layouts(mesh, num_axes):
            value = numbered(layout)
            packed = ours.pack(value, layout, real)
            assert same(ours.unpack(packed), predicted(value, layout)), str(layout)
            # TensorFlow puts the tensor together by itself: the order of our components must be its own.
            gathered = dtensor.relayout(packed, whole_everywhere)
            assert np.array_equal(ours.unpack(gathered)[-1], value), str(layout)


@pytest.mark.parametrize("mesh", FIRST_MESHES, ids=str)
def test_the_shards_that_tensorflow_makes_itself_are_the_predicted_ones(mesh):
    real = ours.create_mesh(mesh)
    for num_axes in (1, 2):
        for layout in layouts(mesh, num_axes):
            value = numbered(layout, times=2)
            everywhere = ours.pack(value, LayoutSpec.replicated(mesh, num_axes), real)
            split = dtensor.relayout(everywhere, ours.to_layout(layout, real))
            assert same(ours.unpack(split), predicted(value, layout)), str(layout)


@st.composite
def tensors(draw):
    layout = draw(st.sampled_from(layouts(draw(st.sampled_from(MESHES)), draw(st.integers(0, 3)))))
    times = [draw(st.integers(1, 3)) for _axis in range(layout.num_axes)]
    shape = [count * layout.num_shards(axis) for axis, count in enumerate(times)]
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.bool_]))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(-50, 50, shape)
    return values.astype(dtype), layout


@given(tensors())
@settings(max_examples=60, deadline=None)
def test_a_tensor_comes_back_whole_with_its_layout(tensor):
    value, layout = tensor
    packed = ours.pack(value, layout)
    assert np.array_equal(ours.to_numpy(packed), value)
    assert ours.to_numpy(packed).dtype == value.dtype
    assert ours.fetch_layout(packed) == layout
    assert same(ours.unpack(packed), predicted(value, layout))
    assert ours.mesh_spec(dtensor.fetch_layout(packed).mesh) == layout.mesh


CUBE = MeshSpec([("p", 2), ("q", 2), ("r", 2)])
BOXES = layouts(CUBE, 3)
# Those whose dimensions come in the cube's order: all others are these with other names, and all sizes are 2.
NAMED_IN_ORDER = [box for box in BOXES if box.sharded_dims == CUBE.names[: len(box.sharded_dims)]]
SOURCES = [NAMED_IN_ORDER, pytest.param(BOXES, marks=pytest.mark.drill)]

CUBE_VALUE = np.arange(8, dtype=np.float32).reshape(2, 2, 2)


def moves_a_dimension_and_more(source: LayoutSpec, target: LayoutSpec) -> bool:
    """Returns whether all axes change and a mesh dimension goes to another one: where TensorFlow can err."""
    axes = zip(source.sharding_specs, target.sharding_specs, strict=True)
    return all(one != other for one, other in axes) and bool({*source.sharded_dims} & {*target.sharded_dims})


def assert_moves(source: LayoutSpec, targets: list[LayoutSpec], compiled: bool) -> None:
    real = ours.create_mesh(CUBE)

    def everywhere(tensor):
        return [ours.relayout(tensor, target, real) for target in targets]

    moved = (tf.function(everywhere) if compiled else everywhere)(ours.pack(CUBE_VALUE, source, real))
    for target, tensor in zip(targets, moved, strict=True):
        assert ours.fetch_layout(tensor) == target
        assert same(ours.unpack(tensor), predicted(CUBE_VALUE, target)), (str(source), str(target))


@pytest.mark.parametrize("sources", SOURCES, ids=len)
def test_relayout_of_three_axes_gives_every_device_its_part_from_any_layout_to_any(sources):
    assert len(BOXES) == 34
    assert len(sources) in (8, 34)
    for source in sources:
        assert_moves(source, BOXES, compiled=False)


@pytest.mark.parametrize("sources", SOURCES, ids=len)
def test_relayout_of_three_axes_does_so_in_a_function_too(sources):
    every_pair = sources is BOXES
    for source in sources:
        targets = [box for box in BOXES if every_pair or moves_a_dimension_and_more(source, box)]
        assert every_pair or bool(targets) == (len(source.sharded_dims) > 0), source
        if targets:
            assert_moves(source, targets, compiled=True)


GRID = MeshSpec([("x", 2), ("y", 4)])
ROWS = LayoutSpec(["x", UNSHARDED], GRID)


@pytest.mark.parametrize("num_axes", [0, 1, 2])
def test_relayout_of_fewer_axes_gives_every_device_its_part_too(num_axes):
    real, value = ours.create_mesh(GRID), np.arange(8**num_axes, dtype=np.float32).reshape([8] * num_axes)
    for source, target in itertools.product(layouts(GRID, num_axes), repeat=2):
        moved = ours.relayout(ours.pack(value, source, real), target, real)
        assert same(ours.unpack(moved), predicted(value, target)), (str(source), str(target))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ours.create_mesh(MeshSpec([("x", 9)])), "no device CPU:8"),
        (lambda: ours.relayout(ours.pack(np.zeros((2, 4)), ROWS), LayoutSpec(["y"], GRID)), "1 axis"),
        (lambda: ours.relayout(ours.pack(np.zeros((2, 2)), ROWS), LayoutSpec(["x", "y"], GRID)), "length 2"),
        (lambda: ours.pack(np.zeros((3, 4)), ROWS), "length 3"),
        (lambda: ours.pack(np.zeros(4), ROWS), "2 axes"),
        (lambda: ours.pack_components([], ROWS), "0 components were given for the mesh"),
        (lambda: ours.pack_components([np.zeros((1, 4))] * 7, ROWS), "7 components"),
        (
            lambda: ours.pack_components([np.zeros((1, 4))] * 7 + [np.zeros((1, 5))], ROWS),
            r"device 7 has the shape \(1, 5\)",
        ),
        (lambda: ours.pack_components([np.zeros(4)] * 8, ROWS), r"device 0 has the shape \(4,\)"),
        (
            lambda: ours.pack_components([np.full((1, 4), device) for device in range(8)], ROWS),
            "Device 1 should hold a replica",
        ),
    ],
)
def test_what_would_crash_or_mislead_tensorflow_is_refused_by_name(wrong, says):
    with pytest.raises(CourseError, match=says):
        wrong()


OTHER_MESHES = [
    MeshSpec([("y", GRID.sizes[1]), ("x", GRID.sizes[0])]),  # the order
    MeshSpec([("x", GRID.sizes[1]), ("y", GRID.sizes[0])]),  # the sizes
    MeshSpec([("x", GRID.sizes[0]), ("z", GRID.sizes[1])]),  # a name
    MeshSpec([("x", GRID.sizes[0])]),
]


@pytest.mark.parametrize("real", [False, True], ids=["specification", "real layout"])
@pytest.mark.parametrize("other", OTHER_MESHES, ids=str)
def test_a_real_mesh_with_other_dimensions_than_the_layouts_is_refused(other, real):
    mesh, layout = ours.create_mesh(other), ours.to_layout(ROWS) if real else ROWS
    whole, parts = np.zeros((8, 8)), [np.zeros((8 // GRID.sizes[0], 8))] * GRID.size
    for wrong in (
        lambda: ours.to_layout(layout, mesh),
        lambda: ours.pack(whole, layout, mesh),
        lambda: ours.pack_components(parts, layout, mesh),
        lambda: ours.relayout(ours.pack(whole, ROWS), layout, mesh),
    ):
        with pytest.raises(CourseError, match=f"The real mesh is {other}; the layout has the mesh {GRID}"):
            wrong()


def test_other_errors_of_tensorflow_stay_as_they_are():
    with pytest.raises(tf.errors.InvalidArgumentError, match="no abort"), explaining_aborts():
        raise tf.errors.InvalidArgumentError(None, None, "no abort")
