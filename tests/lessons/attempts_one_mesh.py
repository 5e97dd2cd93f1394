"""Attempts at the exercise of `one_mesh`."""

from collections import defaultdict
from functools import partial

import numpy as np

from tests.lessons.attempts import Attempts

WHOLE = "unsharded"  # the value of DTensor's UNSHARDED


def by_slices(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        slices = []
        for size, name in zip(array.shape, layout.sharding_specs, strict=True):
            length = size if name == WHOLE else size // layout.mesh.dim_size(name)
            start = 0 if name == WHOLE else place[name] * length
            slices.append(slice(start, start + length))
        components.append(array[tuple(slices)])
    return components


def in_pieces(array, layout, axes=3, sizes=None):
    components = []
    for place in layout.mesh.local_device_locations():
        part = array
        for axis, name in enumerate(layout.sharding_specs[:axes]):
            if name != WHOLE:
                pieces = sizes[name] if sizes else layout.num_shards(axis)
                part = np.split(part, pieces, axis)[place[name]]
        components.append(part)
    return components


def of_two(array, layout):
    ids = np.arange(layout.mesh.size).reshape(2, -1)
    pieces = by_slices(array, layout)
    return pieces if len(pieces) == len(ids[0]) else [pieces[0]] * len(ids[0])


def two_axes(array, layout):
    rows, columns = layout.sharding_specs
    return [rows, columns]


ATTEMPTS = {
    "one_mesh-mine": Attempts(
        right=(by_slices,),
        wrong=(
            (partial(in_pieces, axes=1), "first axis only"),
            (partial(in_pieces, sizes={"batch": 4, "model": 2}), "any array and any mesh"),
            (partial(in_pieces, sizes=defaultdict(lambda: 2, batch=4)), "any array and any mesh"),
            (partial(in_pieces, axes=2), "any array and any mesh"),
            (of_two, "any array and any mesh"),
            (two_axes, "not enough values to unpack"),
            (lambda array, layout: array, "a component for each device"),
        ),
    ),
}
