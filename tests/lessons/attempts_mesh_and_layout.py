"""Attempts at the exercises of `mesh_and_layout`."""

import numpy as np

import course_lib
from course_lib import MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.lessons.attempts import Attempts

EXPLORED = MeshSpec([("x", 2), ("y", 4)])


def cut(whole, layout, *, counts=None, places=None):
    """Cuts axis by axis; right unless it is told other numbers of parts, or other positions."""
    counts = counts or [layout.num_shards(axis) for axis in range(layout.rank)]
    components = []
    for place in places or layout.mesh.local_device_locations():
        part = whole
        for axis, (name, count) in enumerate(zip(layout.sharding_specs, counts, strict=True)):
            part = np.split(part, count, axis)[place.get(name, 0)]
        components.append(part)
    return components


def in_tensorflow(whole, layout):
    tf = course_lib.start_tensorflow()
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.convert_to_tensor(whole)
        for axis, name in enumerate(layout.sharding_specs):
            part = tf.split(part, layout.num_shards(axis), axis=axis)[place.get(name, 0)]
        components.append(part)
    return components


def cut_by_mesh_shape(whole, layout):
    sizes = [
        1 if name == UNSHARDED else layout.shape[axis] for axis, name in enumerate(layout.sharding_specs)
    ]
    return cut(whole, layout, counts=sizes)


def cut_first_axis(whole, layout):
    counts = [layout.num_shards(axis) if axis == 0 else 1 for axis in range(layout.rank)]
    first = layout.sharding_specs[:1]
    places = [
        {name: at for name, at in place.items() if name in first}
        for place in layout.mesh.local_device_locations()
    ]
    return cut(whole, layout, counts=counts, places=places)


def each_block_once(whole, layout):
    seen = {}
    for place, part in zip(layout.mesh.local_device_locations(), cut(whole, layout), strict=True):
        seen.setdefault(tuple(place.get(name, 0) for name in layout.sharding_specs), part)
    return [seen[block] for block in sorted(seen)]


def packed(whole, layout):
    from tensorflow.experimental import dtensor

    return dtensor.pack(in_tensorflow(whole, layout), layout)


def two_axes(whole, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        part = whole
        for axis in range(2):
            at = place.get(layout.sharding_specs[axis], 0) if axis < whole.ndim else 0
            part = np.split(part, layout.num_shards(axis), axis)[at]
        components.append(part)
    return components


def explored(*entries, mesh=EXPLORED, shape=(8, 6)):
    return LayoutSpec(entries, mesh).of(shape)


ATTEMPTS = {
    "mesh_and_layout-explore-one-copy": Attempts(
        right=(
            explored("x", UNSHARDED, mesh=MeshSpec([("x", 8)])),
            explored("x", "y", mesh=MeshSpec([("x", 4), ("y", 2)])),
        ),
        wrong=(
            (explored("y", UNSHARDED), "2 devices hold each element"),
            (explored("y", "x", shape=(8, 4)), "(8, 4)"),
            (explored("x", "y", mesh=MeshSpec([("x", 2), ("y", 2)])), "has 4 devices"),
        ),
    ),
    "mesh_and_layout-cut": Attempts(
        right=(cut, in_tensorflow, lambda whole, layout: tuple(part.tolist() for part in cut(whole, layout))),
        wrong=(
            (cut_by_mesh_shape, "num_shards"),
            (each_block_once, "Give every device"),
            (lambda whole, layout: cut(whole, layout)[:1], "Give every device"),
            (cut_first_axis, "first axis only"),
            (two_axes, "no axis"),
            (lambda whole, layout: [whole] * layout.mesh.size, "Work this one out"),
            (lambda whole, layout: [np.float64(part) for part in cut(whole, layout)], "are float64"),
            (packed, "not yet packed"),
        ),
    ),
}
