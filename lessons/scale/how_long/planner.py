"""The planner: every mesh of so many devices, every plan on it, and what a training step costs under each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from course_lib.specs.architecture import Architecture
from course_lib.specs.cost import Cost, StepCosts, Training
from course_lib.specs.machines import Cluster
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan

MODEL_DIMS = ("x", "y")  # mesh dimensions that split the network; `batch` is the outermost
_DIMS = ("batch",), ("batch", "x"), ("x",), ("batch", "x", "y"), ("x", "y")


@dataclass(frozen=True)
class Planned:
    """A plan and what a step costs under it."""

    plan: Plan
    cost: Cost


def planned(
    architecture: Architecture,
    num_devices: int,
    batch_size: int,
    cluster: Cluster,
    training: Training | None = None,
) -> list[Planned]:
    """Returns every plan with its cost: those that fit into memory first, and among these the fastest first.

    A mesh has a dimension `batch` for the examples and up to two for axes of the network. Each splits one
    axis at least; where a dimension splits nothing, devices compute the same twice.

    Args:
        architecture: the network.
        num_devices: how many devices there are; all are used.
        batch_size: the number of examples in the global batch.
        cluster: the devices and what joins them.
        training: how a step is taken.
    """
    training = training or Training()
    found = []
    for dims in _DIMS:
        meshes = [MeshSpec(zip(dims, sizes, strict=True)) for sizes in _factors(num_devices, len(dims))]
        for costs in _costs(architecture, dims):
            for mesh in meshes:
                if costs.fits(mesh, batch_size, training):
                    cost = costs.cost(mesh, batch_size, cluster, training)
                    found.append(Planned(Plan(str(mesh), mesh, costs.splits), cost))
    limit = cluster.device.memory_bytes
    return sorted(found, key=lambda each: (each.cost.total_bytes > limit, each.cost.seconds))


@cache  # they take most of the time, and each number of devices has the same
def _costs(architecture: Architecture, dims: tuple[str, ...]) -> list[StepCosts]:
    return [StepCosts(architecture, splits) for splits in _splits(architecture, dims)]


def _splits(architecture: Architecture, dims: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yields what the mesh dimensions can split: each splits something, and none two axes of a tensor."""
    model_dims = [name for name in dims if name in MODEL_DIMS]
    axes = [axis for axis in architecture.sizes if axis not in architecture.whole]
    together = {
        frozenset(pair)
        for given in architecture.tensors.values()
        for pair in itertools.combinations(given, 2)
    }
    for names in itertools.product(("", *model_dims), repeat=len(axes)):
        chosen = {axis: name for axis, name in zip(axes, names, strict=True) if name}
        pairs = itertools.combinations(chosen.items(), 2)
        clash = any(first[1] == other[1] and {first[0], other[0]} in together for first, other in pairs)
        if not clash and {*model_dims} == {*chosen.values()}:
            yield chosen if dims[0] != "batch" else {BATCH: "batch", **chosen}


def _factors(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Returns the ways to write a number as a product of so many factors above 1, in any order.

    >>> list(_factors(8, 2))
    [(2, 4), (4, 2)]
    """
    divisors = [each for each in range(2, number + 1) if number % each == 0]
    return (sizes for sizes in itertools.product(divisors, repeat=count) if math.prod(sizes) == number)
