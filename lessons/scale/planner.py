"""The planner: the ways to train a network on so many devices, and what a training step costs under each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from course_lib.specs.architecture import Architecture, Zero
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan
from lessons.scale.cost import STAGE, Cost, Recompute, StepCosts, Training, Ways
from lessons.scale.machines import Cluster

TENSOR_PARALLEL = {"heads": "model", "hidden": "model", "vocabulary": "model"}  # as Megatron-LM splits
SPLITS = {BATCH: BATCH, **TENSOR_PARALLEL}
_WITHIN = 1.05  # of the fastest: plans that differ less are equally good, as far as arithmetic can tell


@dataclass(frozen=True)
class Planned:
    """A plan, how a step is taken, and what that costs."""

    plan: Plan
    training: Training
    cost: Cost


@dataclass(frozen=True)
class Ranking:
    """Plans: those that fit into memory first, and among these the fastest first.

    Attributes:
        ways: how a step is taken under each, in any order.
        costs: what that costs, in the same order.
        order: their places among these, the best first.
        num_fitting: how many fit.
        flops: the operations of all products in a step.
        cluster: the devices and what joins them.
        training: what all share.
    """

    ways: Ways
    costs: Cost
    order: npt.NDArray[np.int64]
    num_fitting: int
    flops: float
    cluster: Cluster
    training: Training

    @cached_property
    def plans(self) -> Sequence[Planned]:
        """All of them, each made when it is asked for."""
        return _Plans(self)

    @property
    def num_best(self) -> int:
        """How many fit and take at most 5 % longer than the fastest."""
        seconds = self.costs.seconds[self.order[: self.num_fitting]]
        return int(np.sum(seconds <= _WITHIN * seconds[0]))

    def utilisation(self, planned: Planned) -> float:
        """Returns the share of the devices' peak that a step uses, without what is computed again."""
        peak = planned.plan.mesh.size * self.cluster.device.flops_per_second
        return float(self.flops / (planned.cost.seconds * peak))

    def binds(self) -> str:
        """Returns what keeps the best plan from being faster: "memory", "links", "bubble" or "computing".

        It is memory where a plan that does not fit would be faster by more than 5 %, and else what takes
        most of the time.
        """
        cost = self.plans[0].cost
        if cost.seconds > _WITHIN * np.min(self.costs.seconds[self.order]):
            return "memory"
        links = sum(cost.communication_seconds.values())
        parts = {"computing": cost.compute_seconds, "links": links, "bubble": cost.bubble_seconds}
        return max(parts, key=lambda part: parts[part])


class _Plans(Sequence[Planned]):
    """The plans of a ranking, the best first."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    def __len__(self) -> int:
        return len(self._ranking.order)

    @overload
    def __getitem__(self, at: int) -> Planned: ...
    @overload
    def __getitem__(self, at: slice) -> list[Planned]: ...
    def __getitem__(self, at: int | slice) -> Planned | list[Planned]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        ranking, place = self._ranking, int(self._ranking.order[at])
        mesh = ranking.ways.meshes[ranking.ways.mesh[place]]
        plan = Plan(str(mesh), mesh, SPLITS)
        return Planned(plan, ranking.ways.training(place, ranking.training), ranking.costs.at(place))


def transformer_plans(
    network: Architecture, num_devices: int, batch_size: int, cluster: Cluster, training: Training
) -> Ranking:
    """Returns the ways to train a transformer: tensor × stages × data × ZeRO × recomputation.

    Args:
        network: a transformer.
        num_devices: how many devices there are; all are used.
        batch_size: the number of examples in the global batch.
        cluster: the devices and what joins them.
        training: the numbers of bytes, and whether exchanges overlap; the rest is planned.
    """
    ways = transformer_ways(network, [num_devices], batch_size)
    return rankings(network, ways, batch_size, cluster, training)[num_devices]


def transformer_ways(network: Architecture, device_counts: Sequence[int], batch_size: int) -> Ways:
    """Returns the ways to take a step of a transformer, on each of these numbers of devices.

    Heads, hidden units and vocabulary are split together over `model`, the innermost mesh dimension, and the
    sequence of all else. Stages have any number of chunks, and a batch any number of micro-batches.
    """
    meshes = [mesh for count in device_counts for mesh in _meshes(network, count, batch_size)]
    return Ways.of(
        meshes, [(at, *way) for at, mesh in enumerate(meshes) for way in _ways(network, mesh, batch_size)]
    )


def rankings(
    network: Architecture, ways: Ways, batch_size: int, cluster: Cluster, training: Training
) -> dict[int, Ranking]:
    """Returns the ways ranked, by the number of devices; of `training` counts what the ways share."""
    model = _model(network)
    costs, flops = model.costs(ways, batch_size, cluster, training), model.flops(batch_size)
    too_large = costs.total_bytes > cluster.device.memory_bytes
    order = np.lexsort((costs.seconds, too_large))
    sizes = np.array([mesh.size for mesh in ways.meshes])[ways.mesh][order]
    found = {}
    for size in dict.fromkeys(mesh.size for mesh in ways.meshes):
        own = order[sizes == size]
        if len(own):
            num_fitting = int(np.sum(~too_large[own]))
            found[size] = Ranking(ways, costs, own, num_fitting, flops, cluster, training)
    return found


@cache
def _model(network: Architecture) -> StepCosts:
    return StepCosts(network, SPLITS)


def _meshes(network: Architecture, num_devices: int, batch_size: int) -> Iterator[MeshSpec]:
    for model in _divisors(math.gcd(num_devices, *(network.sizes[axis] for axis in TENSOR_PARALLEL))):
        for stages in _divisors(math.gcd(num_devices // model, network.num_blocks)):
            data = num_devices // model // stages
            if batch_size % data == 0:
                yield MeshSpec([(STAGE, stages), (BATCH, data), ("model", model)])


def _ways(network: Architecture, mesh: MeshSpec, batch_size: int) -> Iterator[tuple[int, ...]]:
    """Yields micro-batches, chunks, ZeRO, recomputation, and whether the sequence is split."""
    stages, data, model = (size for _name, size in mesh.dims)
    zeros = [*Zero] if data > 1 else [Zero.NOTHING]
    recomputes = [
        at for at, how in enumerate(Recompute) if network.selective or how is not Recompute.SELECTIVE
    ]
    for microbatches in _divisors(batch_size // data):
        is_interleaved = stages > 1 and microbatches % stages == 0
        chunks = _divisors(network.num_blocks // stages) if is_interleaved else [1]
        yield from itertools.product([microbatches], chunks, zeros, recomputes, [int(model > 1)])


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
