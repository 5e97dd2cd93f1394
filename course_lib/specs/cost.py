"""What a training step costs by arithmetic: the time of collectives and of computing, a device's memory.

The collectives are those of `Architecture.exchanges`. Devices compute one sum after another and wait for each
collective, so the time is an upper bound for a program that does both at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from course_lib.specs.architecture import Architecture, Sum
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan

_ROUNDS = {Kind.ALL_REDUCE: 2, Kind.ALL_GATHER: 1, Kind.REDUCE_SCATTER: 1, Kind.ALL_TO_ALL: 1}


@dataclass(frozen=True)
class Device:
    """What one device computes and holds.

    Attributes:
        name: what it is called.
        flops_per_second: the most multiplications and additions of a matrix product.
        memory_bytes: of its own memory.
        memory_bytes_per_second: how fast it reads and writes that.
        source: where these numbers stand.
        efficiency: the share of `flops_per_second` that products reach.
    """

    name: str
    flops_per_second: float
    memory_bytes: float
    memory_bytes_per_second: float
    source: str
    efficiency: float = 1.0


@dataclass(frozen=True)
class Link:
    """What joins devices.

    Attributes:
        bytes_per_second: that one device sends while it receives as many.
        latency_seconds: of a message, however short.
        source: where these numbers stand.
    """

    bytes_per_second: float
    latency_seconds: float
    source: str


@dataclass(frozen=True)
class Cluster:
    """Equal nodes of equal devices; the devices of a node have consecutive numbers.

    Attributes:
        device: each of them.
        devices_per_node: how many share a node.
        inside: what joins those of a node.
        between: what joins nodes, for each device.
    """

    device: Device
    devices_per_node: int
    inside: Link
    between: Link


@dataclass(frozen=True)
class Training:
    """How a step is taken, apart from the plan.

    Attributes:
        element_bytes: of a number in variables, gradients and activations.
        state_bytes: of what the optimizer keeps for each number of a variable: two averages of float32, and
            in mixed precision the variable itself in float32.
        microbatches: into how many parts a batch is cut, one after another, whose gradients are added up.
        recompute: whether a block's activations are computed again on the way back in place of being kept.
    """

    element_bytes: int = 4
    state_bytes: int = 8
    microbatches: int = 1
    recompute: bool = False


MIXED = Training(element_bytes=2, state_bytes=12)


@dataclass(frozen=True)
class Cost:
    """What a training step takes of each device.

    Attributes:
        compute_seconds: of its sums.
        communication_seconds: of the collectives over each of the mesh dimensions.
        memory_bytes: of each kind of tensors.
    """

    compute_seconds: float
    communication_seconds: Mapping[str, float]
    memory_bytes: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The time of the step where nothing is done at once."""
        return self.compute_seconds + sum(self.communication_seconds.values())

    @property
    def total_bytes(self) -> float:
        """The memory of all kinds."""
        return sum(self.memory_bytes.values())


def ring_seconds(kind: Kind, num_devices: int, payload_bytes: float, link: Link) -> float:
    """Returns the time of a collective in a ring: each round sends one of as many parts as there are devices.

    >>> link = Link(bytes_per_second=1e9, latency_seconds=1e-6, source="")
    >>> round(1e3 * ring_seconds(Kind.ALL_REDUCE, 4, 8e6, link), 3)
    12.006

    Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.
    """
    parts = 1 if kind is Kind.REDUCE_SCATTER else num_devices  # its payload is a part already
    message = payload_bytes / parts / link.bytes_per_second
    return _ROUNDS[kind] * (num_devices - 1) * (link.latency_seconds + message)


def tree_seconds(num_devices: int, payload_bytes: float, link: Link) -> float:
    """Returns the time of an all-reduce up and down two binary trees that have half of the payload each.

    Source: https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/.
    """
    depth = math.log2(num_devices)
    return 2 * depth * link.latency_seconds + 2 * payload_bytes / link.bytes_per_second


def collective_seconds(collective: Collective, cluster: Cluster) -> float:
    """Returns the time of a collective; one that leaves the node sums up within nodes first.

    Between nodes each device of a node exchanges its part with those of its own place in other nodes.
    """
    names = collective.mesh_dims
    inside, between = group_sizes(collective.mesh, names, cluster.devices_per_node)
    return _seconds(collective.kind, inside, between, collective.payload_bytes, cluster)


def group_sizes(mesh: MeshSpec, names: tuple[str, ...], devices_per_node: int) -> tuple[int, int]:
    """Returns how many devices of a group share a node, and over how many nodes it extends.

    >>> group_sizes(MeshSpec([("batch", 4), ("model", 4)]), ("batch",), devices_per_node=8)
    (2, 2)
    """
    inside, stride, size = 1, 1, 1
    for name, count in reversed(mesh.dims):
        if name in names:
            size *= count
            if mesh.size <= devices_per_node:
                inside *= count
            elif devices_per_node % stride == 0:  # only what fills nodes evenly shares them
                inside *= math.gcd(devices_per_node // stride, count)
        stride *= count
    return inside, size // inside


def _seconds(kind: Kind, inside: int, between: int, payload_bytes: float, cluster: Cluster) -> float:
    if between == 1:
        return _best(kind, inside, payload_bytes, cluster.inside)
    if inside == 1 or kind is Kind.ALL_TO_ALL:
        return _best(kind, inside * between, payload_bytes, cluster.between)
    whole = payload_bytes * (inside * between if kind is Kind.REDUCE_SCATTER else 1)
    within = ring_seconds(Kind.ALL_GATHER, inside, whole, cluster.inside)
    if kind is not Kind.ALL_REDUCE:
        return within + ring_seconds(Kind.ALL_GATHER, between, whole / inside, cluster.between)
    return 2 * within + _best(kind, between, whole / inside, cluster.between)


def _best(kind: Kind, num_devices: int, payload_bytes: float, link: Link) -> float:
    ring = ring_seconds(kind, num_devices, payload_bytes, link)
    return min(ring, tree_seconds(num_devices, payload_bytes, link)) if kind is Kind.ALL_REDUCE else ring


class StepCosts:
    """The costs of a network's training step, on meshes that differ in their sizes alone.

    Args:
        architecture: the network.
        splits: for each axis that is split the mesh dimension that splits it.

    Raises:
        CourseError: one mesh dimension would split two axes of a tensor.
    """

    def __init__(self, architecture: Architecture, splits: Mapping[str, str]) -> None:
        self.architecture, self.splits = architecture, splits
        two = MeshSpec([(name, 2) for name in dict.fromkeys(splits.values())] or [("all", 2)])
        smallest = replace(architecture, sizes=dict.fromkeys(architecture.sizes, 2))
        self._exchanges = list(smallest.exchanges(Plan("", two, splits), batch_size=2))
        self._axes = architecture.tensors
        self._products = {each.result: _axes_of_product(architecture, each) for each in architecture.sums}

    def fits(self, mesh: MeshSpec, batch_size: int, training: Training) -> bool:
        """Returns whether every axis that is split divides among the places of its mesh dimension."""
        sizes = {**self.architecture.sizes, BATCH: batch_size / training.microbatches}
        return all(sizes[axis] % mesh.dim_size(name) == 0 for axis, name in self.splits.items())

    def cost(
        self, mesh: MeshSpec, batch_size: int, cluster: Cluster, training: Training | None = None
    ) -> Cost:
        """Returns what a step on a batch costs.

        Args:
            mesh: with the mesh dimensions of `splits`.
            batch_size: the number of examples in the global batch.
            cluster: the devices and what joins them.
            training: how a step is taken; float32, the whole batch at once where it is not given.
        """
        training = training or Training()
        shards = {axis: mesh.dim_size(name) for axis, name in self.splits.items()}
        sizes = {**self.architecture.sizes, BATCH: batch_size // training.microbatches}
        local = {axis: size / shards.get(axis, 1) for axis, size in sizes.items()}
        counts = {name: math.prod(local[axis] for axis in axes) for name, axes in self._axes.items()}
        return Cost(
            self._compute(local, counts, cluster.device, training),
            self._communication(mesh, counts, cluster, training),
            dict(self._memory(counts, training)),
        )

    def _compute(
        self, local: Mapping[str, float], counts: Mapping[str, float], device: Device, training: Training
    ) -> float:
        """Returns the time of all sums: each as long as its products take, or its tensors' way to memory.

        The way back of a product has two products, the one of anything else moves as much again.
        """
        passes = training.microbatches * (4 if training.recompute else 3)
        seconds = 0.0
        for each in self.architecture.sums:
            axes = self._products[each.result]
            flops = 2 * math.prod(local[axis] for axis in axes) if axes else 0.0
            moved = training.element_bytes * sum(counts[name] for name in (each.result, *each.operands))
            seconds += each.times * max(
                flops / (device.flops_per_second * device.efficiency), moved / device.memory_bytes_per_second
            )
        return passes * seconds

    def _communication(
        self, mesh: MeshSpec, counts: Mapping[str, float], cluster: Cluster, training: Training
    ) -> dict[str, float]:
        found: dict[str, float] = {}
        groups: dict[tuple[str, ...], tuple[int, int]] = {}
        for each in self._exchanges:
            names = each.collective.mesh_dims
            if names not in groups:
                groups[names] = group_sizes(mesh, names, cluster.devices_per_node)
            payload = counts[each.tensor] * training.element_bytes
            passes = 2 if training.recompute and not each.is_gradient else 1
            if each.tensor not in self.architecture.variables:
                passes *= training.microbatches
            seconds = each.times * passes * _seconds(Kind.ALL_REDUCE, *groups[names], payload, cluster)
            over = ", ".join(names)
            found[over] = found.get(over, 0.0) + seconds
        return found

    def _memory(self, counts: Mapping[str, float], training: Training) -> Iterator[tuple[str, float]]:
        repeats = self.architecture.repeats
        variables = sum(repeats.get(name, 1) * counts[name] for name in self.architecture.variables)
        yield "variables", variables * training.element_bytes
        yield "gradients", variables * training.element_bytes
        yield "optimizer", variables * training.state_bytes
        sums = self.architecture.sums
        kept = sum(counts[each.result] * (1 if training.recompute else each.times) for each in sums)
        if training.recompute:  # of each block only what goes in
            kept += counts.get(self.architecture.into_block, 0.0) * max(each.times for each in sums)
        yield "activations", kept * training.element_bytes


def _axes_of_product(architecture: Architecture, made: Sum) -> frozenset[str]:
    """Returns all axes of a product, over which its multiplications run; none for other operations."""
    axes = {axis for its_axes in architecture.operand_axes(made) for axis in its_axes}
    is_product = len(made.operands) > 1 and not axes <= {*made.axes}
    return frozenset(axes | {*made.axes}) if is_product else frozenset()
