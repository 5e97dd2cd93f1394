"""Attempts at the exercises of lesson 01."""

import numpy as np

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.exercises.checks import refusal
from tests.lessons.attempts import Attempts

GRID = MeshSpec([("batch", 2), ("model", 4)])
EXPLORED = MeshSpec([("x", 2), ("y", 4)])


def split(whole, layout, *, counts=None, mesh=None):
    """Splits axis by axis; right unless it is told other numbers of parts, or to number by another mesh."""
    counts = counts or [layout.num_shards(axis) for axis in range(layout.num_axes)]
    mesh, components = mesh or layout.mesh, []
    for place in map(mesh.coords, range(mesh.size)):
        part = whole
        for axis, (name, count) in enumerate(zip(layout.sharding_specs, counts, strict=True)):
            part = np.split(part, count, axis)[place.get(name, 0)]
        components.append(part)
    return components


def by_slices(whole, layout):
    components = []
    for device_id in range(layout.mesh.size):
        part = whole
        for axis, at in enumerate(layout.block(device_id)):
            length = part.shape[axis] // layout.num_shards(axis)
            part = np.take(part, range(at * length, (at + 1) * length), axis)
        components.append(part.tolist())
    return tuple(components)


def split_by_mesh_shape(whole, layout):
    sizes = [
        1 if name == UNSHARDED else layout.mesh.sizes[axis] for axis, name in enumerate(layout.sharding_specs)
    ]
    return split(whole, layout, counts=sizes)


def split_first_axis(whole, layout):
    return split(
        whole, LayoutSpec([*layout.sharding_specs[:1], *["unsharded"] * 2][: layout.num_axes], layout.mesh)
    )


def column_by_column(whole, layout):
    return split(whole, layout, mesh=MeshSpec(reversed(layout.mesh.dims)))


def each_block_once(whole, layout):
    seen = {}
    for device_id, part in enumerate(split(whole, layout)):
        seen.setdefault(layout.block(device_id), part)
    return [seen[block] for block in sorted(seen)]


def needing_an_axis(whole, layout):
    return split(whole, layout) if whole.shape[0] else []


def explored(*entries, mesh=EXPLORED, shape=(8, 6)):
    return LayoutSpec(entries, mesh).of(shape)


ATTEMPTS = {
    "01-four-copies": Attempts(
        right=(),
        wrong=(
            (LayoutSpec(["model", UNSHARDED], GRID), "copies is 2"),
            (LayoutSpec([UNSHARDED, "batch"], GRID), "splits the columns"),
            (LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])), "exercise_mesh"),
            (LayoutSpec(["batch"], GRID), "1 axis"),
            (["batch", UNSHARDED], "LayoutSpec"),
        ),
    ),
    "01-explore-two-copies": Attempts(
        right=(
            explored("x", UNSHARDED, mesh=MeshSpec([("x", 4), ("y", 2)])),
            explored("z", "x", mesh=MeshSpec([("x", 2), ("y", 2), ("z", 2)])),
        ),
        wrong=(
            (explored(UNSHARDED, "x"), "4 devices hold each element"),
            (explored(UNSHARDED, "y", shape=(8, 4)), "(8, 4)"),
            (explored("x", UNSHARDED, mesh=MeshSpec([("x", 2), ("y", 2)])), "has 4 devices"),
            (refusal(explored, UNSHARDED, "y"), "refuses"),
            ("[y, unsharded]", "explorer itself"),
        ),
    ),
    "01-explore-one-copy": Attempts(
        right=(explored("x", UNSHARDED, mesh=MeshSpec([("x", 8)])),),
        wrong=(
            (explored("y", UNSHARDED), "2 devices hold each element"),
            (refusal(explored, "x", "y"), "refuses"),
        ),
    ),
    "01-split": Attempts(
        right=(split, by_slices),
        wrong=(
            (split_by_mesh_shape, "num_shards"),
            (each_block_once, "Give every device"),
            (split_first_axis, "first axis only"),
            (column_by_column, "column by column"),
            (needing_an_axis, "without axes"),
            (lambda whole, layout: np.split(whole, 2), "fails for"),
            (lambda whole, layout: [whole] * layout.mesh.size, "Work this one out"),
            (lambda whole, layout: iter(split(whole, layout)), "Return a list"),
            (lambda whole, layout: None, "return"),
            ([[0, 1], [2, 3]], "function"),
        ),
    ),
    "01-missing-bytes": Attempts(
        right=(np.float32(48),),
        wrong=(
            (64, "holds afterwards"),
            (32, "holds before"),
            (12, "about bytes"),
            (0, "which not"),
            ("a third", "number"),
        ),
    ),
    "01-weight-part": Attempts(
        right=([[400, 24], 38400],),
        wrong=(
            (((600, 16), 38400), "in the order of the axes"),
            (((400, 12), 19200), "batch does not split"),
            (((1200, 24), 115200), "only one axis"),
            (((400, 24), 9600), "How many bytes"),
            ((38400, (400, 24)), "First the shape"),
            (38400, "tuple or list"),
        ),
    ),
}
