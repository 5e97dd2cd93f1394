"""The planner: the ways to train a network on so many devices, and what a training step costs under each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from course_lib.specs.architecture import Architecture, Zero
from course_lib.specs.machines import Cluster
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan
from lessons.scale.how_long.cost import STAGE, Cost, Recompute, StepCosts, Training

TENSOR_PARALLEL = {"heads": "model", "hidden": "model", "vocabulary": "model"}  # as Megatron-LM splits
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
        plans: all of them.
        num_fitting: how many fit.
        flops: the operations of all products in a step.
        cluster: the devices and what joins them.
    """

    plans: Sequence[Planned]
    num_fitting: int
    flops: float
    cluster: Cluster

    @property
    def best(self) -> list[Planned]:
        """Those that fit and take at most 5 % longer than the fastest."""
        fitting = self.plans[: self.num_fitting]
        return [each for each in fitting if each.cost.seconds <= _WITHIN * fitting[0].cost.seconds]

    def utilisation(self, planned: Planned) -> float:
        """Returns the share of the devices' peak that a step uses, without what is computed again."""
        peak = planned.plan.mesh.size * self.cluster.device.flops_per_second
        return self.flops / (planned.cost.seconds * peak)

    def binds(self) -> str:
        """Returns what keeps the best plan from being faster: "memory", "links", "bubble" or "computing".

        It is memory where a plan that does not fit would be faster by more than 5 %, and else what takes
        most of the time.
        """
        cost = self.plans[0].cost
        if cost.seconds > _WITHIN * min(each.cost.seconds for each in self.plans):
            return "memory"
        links = sum(cost.communication_seconds.values())
        parts = {"computing": cost.compute_seconds, "links": links, "bubble": cost.bubble_seconds}
        return max(parts, key=lambda part: parts[part])


def transformer_plans(
    network: Architecture, num_devices: int, batch_size: int, cluster: Cluster, training: Training
) -> Ranking:
    """Returns the ways to train a transformer: tensor × stages × data × ZeRO × recomputation.

    Heads, hidden units and vocabulary are split together over `model`, the innermost mesh dimension, and the
    sequence of all else. Stages have any number of chunks, and a batch any number of micro-batches.

    Args:
        network: a transformer.
        num_devices: how many devices there are; all are used.
        batch_size: the number of examples in the global batch.
        cluster: the devices and what joins them.
        training: the numbers of bytes, and whether exchanges overlap; the rest is planned.
    """
    costs = StepCosts(network, {BATCH: BATCH, **TENSOR_PARALLEL})
    found = []
    for mesh in _meshes(network, num_devices, batch_size):
        plan = Plan(str(mesh), mesh, costs.splits)
        for chosen in _trainings(network, mesh, batch_size, training):
            found.append(Planned(plan, chosen, costs.cost(mesh, batch_size, cluster, chosen)))
    return _ranking(found, costs.flops(batch_size), cluster)


def _meshes(network: Architecture, num_devices: int, batch_size: int) -> Iterator[MeshSpec]:
    for model in _divisors(math.gcd(num_devices, *(network.sizes[axis] for axis in TENSOR_PARALLEL))):
        for stages in _divisors(math.gcd(num_devices // model, network.num_blocks)):
            data = num_devices // model // stages
            if batch_size % data == 0:
                yield MeshSpec([(STAGE, stages), (BATCH, data), ("model", model)])


def _trainings(
    network: Architecture, mesh: MeshSpec, batch_size: int, training: Training
) -> Iterator[Training]:
    stages, data, model = (size for _name, size in mesh.dims)
    base = replace(training, sequence_parallel=model > 1)
    recomputes = Recompute if network.selective else [Recompute.NONE, Recompute.FULL]
    for microbatches in _divisors(batch_size // data):
        is_interleaved = stages > 1 and microbatches % stages == 0
        for chunks in _divisors(network.num_blocks // stages) if is_interleaved else [1]:
            for zero, recompute in itertools.product(Zero if data > 1 else [Zero.NOTHING], recomputes):
                yield replace(base, microbatches=microbatches, chunks=chunks, zero=zero, recompute=recompute)


def _ranking(found: list[Planned], flops: float, cluster: Cluster) -> Ranking:
    limit = cluster.device.memory_bytes
    found.sort(key=lambda each: (each.cost.total_bytes > limit, each.cost.seconds))
    return Ranking(found, sum(each.cost.total_bytes <= limit for each in found), flops, cluster)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
