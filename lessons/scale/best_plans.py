"""The best plans for a network on a cluster of each size, of those that the chosen techniques allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from course_lib.specs.architecture import Architecture, Zero
from lessons.scale.cost import MIXED, STAGE, Recompute, Ways
from lessons.scale.machines import Cluster
from lessons.scale.networks import CLUSTERS, transformer
from lessons.scale.planner import Planned, Ranking, rankings, transformer_ways
from lessons.scale.published import EFFICIENCY

# By billions of parameters: blocks, features and heads. Source: https://arxiv.org/abs/2104.04473, Table 1; 34
# billion lie between two of its rows.
NETWORKS = {"1.7": (24, 2304, 24), "18": (40, 6144, 48), "34": (48, 7680, 64), "146": (80, 12288, 96)}
SIZES = tuple(8 * 2**doublings for doublings in range(10))
TECHNIQUES = ("stages", "zero", "overlap", "recompute")
_MOST = 5


@dataclass(frozen=True)
class Choice:
    """What is trained on what.

    Attributes:
        network: a name in `NETWORKS`.
        cluster: a name in `CLUSTERS`.
        examples: in a batch.
        links: by how much the links between nodes are faster than those of the cluster.
        stages: whether the network may be cut into stages.
        zero: whether state, gradients and variables may be split over `batch`.
        overlap: whether exchanges over `batch` hide behind computing.
        recompute: whether activations may be computed again.
    """

    network: str
    cluster: str
    examples: int
    links: float
    stages: bool
    zero: bool
    overlap: bool
    recompute: bool

    def machines(self) -> Cluster:
        """Returns the devices and what joins them."""
        cluster = CLUSTERS[self.cluster]
        faster = self.links * cluster.between.bytes_per_second
        device = replace(cluster.device, efficiency=EFFICIENCY)
        return replace(cluster, device=device, between=replace(cluster.between, bytes_per_second=faster))


@dataclass(frozen=True)
class Best:
    """The best plans on so many devices.

    Attributes:
        plans: the fastest of those that fit, or where none does the smallest; of those that differ in
            their micro-batches and chunks alone the first.
        num_plans: how many were ranked.
        num_fitting: how many fit into memory.
        num_best: how many of these take at most 5 % longer than the fastest.
        utilisation: which share of the peak the first one uses.
        binds: what keeps it from being faster, as `Ranking.binds` says.
    """

    plans: Sequence[Planned]
    num_plans: int
    num_fitting: int
    num_best: int
    utilisation: float
    binds: str


@cache
def best_plans(choice: Choice) -> dict[int, Best]:
    """Returns the best plans by the number of devices, for all of `SIZES`."""
    training = replace(MIXED, overlap=choice.overlap)
    ways = _allowed(_ways(choice.network, choice.examples), choice)
    network = _network(choice.network)
    found = rankings(network, ways, choice.examples, choice.machines(), training)
    return {size: _best(ranking) for size, ranking in found.items()}


def _allowed(ways: Ways, choice: Choice) -> Ways:
    """Returns the ways that need only what may be used."""
    kept = np.ones(len(ways.mesh), np.bool_)
    if not choice.stages:
        kept &= ways.size(STAGE) == 1
    if not choice.zero:
        kept &= ways.zero == Zero.NOTHING
    if not choice.recompute:
        kept &= ways.recompute == [*Recompute].index(Recompute.NONE)
    return ways.only(kept)


def _best(ranking: Ranking) -> Best:
    order = np.arange(ranking.num_fitting)
    if not ranking.num_fitting:
        order = np.argsort(ranking.costs.total_bytes[ranking.order], kind="stable")
    different: dict[tuple[int, ...], int] = {}
    for at in order.tolist():
        place = ranking.order[at]
        named = ranking.ways.mesh, ranking.ways.zero, ranking.ways.recompute
        different.setdefault(tuple(int(column[place]) for column in named), at)
        if len(different) == _MOST:
            break
    plans = [ranking.plans[at] for at in different.values()]
    fits = ranking.num_fitting > 0
    return Best(
        plans,
        num_plans=len(ranking.plans),
        num_fitting=ranking.num_fitting,
        num_best=ranking.num_best if fits else 0,
        utilisation=ranking.utilisation(plans[0]),
        binds=ranking.binds() if fits else "memory",
    )


@cache
def _ways(network: str, examples: int) -> Ways:
    return transformer_ways(_network(network), SIZES, examples)


def _network(name: str) -> Architecture:
    blocks, features, heads = NETWORKS[name]
    return transformer(blocks, sequence=2048, features=features, heads=heads, vocabulary=51200)
