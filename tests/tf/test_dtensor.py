"""Specs against the real thing: TensorFlow's own shards, on every mesh of 6 and 8 devices."""

import itertools
import math

import numpy as np
import pytest

from course_lib import CourseError, MeshSpec
from course_lib.devices import dtensor as ours
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

MESHES = [
    MeshSpec(zip("xyz", sizes, strict=False))
    for num_devices in (6, 8)
    for num_dims in (1, 2, 3)
    for sizes in itertools.product(range(1, num_devices + 1), repeat=num_dims)
    if math.prod(sizes) == num_devices
]
OFTEN = [(8,), (3, 2), (2, 4), (1, 3, 2), (2, 2, 2)]


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


@pytest.mark.parametrize(
    "mesh",
    [
        pytest.param(mesh, id=str(mesh), marks=() if mesh.sizes in OFTEN else pytest.mark.drill_all)
        for mesh in MESHES
    ],
)
def test_shards_are_those_that_tensorflow_understands_and_makes_itself_on_every_layout(mesh):
    real = ours.create_mesh(mesh)
    for num_axes in (1, 2, 3):
        replicated = LayoutSpec([UNSHARDED] * num_axes, mesh)
        for layout in layouts(mesh, num_axes):
            value = numbered(layout)
            packed = ours.pack(value, layout, real)
            assert same(ours.unpack(packed), predicted(value, layout)), str(layout)
            assert ours.fetch_layout(packed) == layout
            assert np.array_equal(ours.to_numpy(packed), value)
            # TensorFlow puts the tensor together by itself: the order of our components must be its own.
            gathered = dtensor.relayout(packed, ours.to_layout(replicated, real))
            assert np.array_equal(ours.unpack(gathered)[-1], value), str(layout)
            if num_axes < 3:
                value = numbered(layout, times=2)
                split = dtensor.relayout(ours.pack(value, replicated, real), ours.to_layout(layout, real))
                assert same(ours.unpack(split), predicted(value, layout)), str(layout)


def test_copies_of_a_variable_that_differ_are_read_as_they_are():
    """`read_value` outside of a `tf.function` gives every device the copy of device 0."""
    mesh = MeshSpec([("batch", 8)])
    layout = ours.to_layout(LayoutSpec([UNSHARDED], mesh), ours.create_mesh(mesh))
    unlike = [tf.fill([32], float(device)) for device in range(8)]
    read = ours.unpack(dtensor.DVariable(dtensor.pack(unlike, layout)))
    assert [part[0] for part in read] == list(range(8))


def test_a_mesh_of_more_devices_than_there_are_is_refused():
    with pytest.raises(CourseError, match="no device CPU:8"):
        ours.create_mesh(MeshSpec([("x", 9)]))
