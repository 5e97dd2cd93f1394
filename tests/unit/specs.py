"""Hypothesis strategies for meshes, layouts and tensors that fit them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

NAMES = ("x", "y", "z", "batch")


@st.composite
def meshes(draw) -> MeshSpec:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 3))]
    sizes = draw(
        st.lists(st.integers(1, 6), min_size=len(names), max_size=len(names)).filter(
            lambda sizes: math.prod(sizes) <= 24
        )
    )
    return MeshSpec(zip(names, sizes, strict=True))


@st.composite
def layouts_with_shapes(draw) -> tuple[LayoutSpec, tuple[int, ...]]:
    mesh = draw(meshes())
    free = list(mesh.names)
    specs = []
    for _axis in range(draw(st.integers(0, 3))):
        specs.append(draw(st.sampled_from([UNSHARDED, *free])))
        free = [name for name in free if name != specs[-1]]
    layout = LayoutSpec(specs, mesh)
    shape = tuple(layout.num_shards(axis) * draw(st.integers(1, 4)) for axis in range(layout.num_axes))
    return layout, shape
