"""Attempts at the exercises of `mesh_and_layout`."""

import numpy as np

import course_lib
from course_lib import MeshSpec
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.lessons.attempts import Attempts

EXPLORED = MeshSpec([("x", 2), ("y", 4)])


def cut(whole, layout):
    """Cuts axis by axis."""
    components = []
    for place in layout.mesh.local_device_locations():
        part = whole
        for axis, name in enumerate(layout.sharding_specs):
            part = np.split(part, layout.num_shards(axis), axis)[place.get(name, 0)]
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
            (explored("y", "x", shape=(8, 4)), "the shape (8, 6)"),
            (explored("x", "y", mesh=MeshSpec([("x", 2), ("y", 2)])), "its mesh 8 devices"),
        ),
    ),
    "mesh_and_layout-cut": Attempts(
        right=(
            cut,
            in_tensorflow,
            lambda whole, layout: [np.asfortranarray(part) for part in cut(whole, layout)],
        ),
        wrong=(
            (two_axes, "1 is no axis"),
            (lambda whole, layout: [layout.num_shards("x")], "'x' is no axis"),
            (lambda whole, layout: [whole] * layout.mesh.size, "show(layout, shape)"),
            (lambda whole, layout: [np.float64(part) for part in cut(whole, layout)], "the dtype of"),
            (lambda whole, layout: tuple(cut(whole, layout)), "in a list"),
            (lambda whole, layout: cut(whole, layout)[:1], "Give every device a part"),
        ),
    ),
}
