"""What a training step costs by arithmetic: the time of computing, of collectives and of waiting, and memory.

A batch is cut into micro-batches. The mesh dimension `batch` splits their examples, `stage` the blocks of the
network, and all others what a plan says. Sources: stages https://arxiv.org/abs/2104.04473, ZeRO
https://arxiv.org/abs/1910.02054, split sequences and recomputation https://arxiv.org/abs/2205.05198.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from course_lib.specs.architecture import Architecture, Sum, Zero
from course_lib.specs.collectives import Kind
from course_lib.specs.machines import Cluster, group_seconds, group_sizes
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan

STAGE = "stage"  # the outermost mesh dimension, where there is one


class Recompute(StrEnum):
    """Which activations of a block are computed again on the backward pass, and not kept."""

    NONE = "none"
    SELECTIVE = "selective"  # those that the architecture says
    FULL = "full"  # all but what goes into the block


@dataclass(frozen=True)
class Training:
    """How a step is taken, apart from mesh and plan.

    Attributes:
        element_bytes: of a number in variables, gradients and activations.
        state_bytes: of the optimizer for each number of a variable, such as two averages of float32.
        microbatches: into how many parts a batch is cut, one after another, whose gradients are added up.
        recompute: which activations are computed again.
        sequence_parallel: whether activations that the plan does not split are split along the sequence.
        zero: what is split over `batch` too.
        chunks: how many parts of the network, apart from each other, each stage has; more than one for an
            interleaved schedule, where the micro-batches are a multiple of the stages.
        overlap: whether each block exchanges over `batch` while others compute.
    """

    element_bytes: int = 4
    state_bytes: int = 8
    microbatches: int = 1
    recompute: Recompute = Recompute.NONE
    sequence_parallel: bool = False
    zero: Zero = Zero.NOTHING
    chunks: int = 1
    overlap: bool = False


MIXED = Training(element_bytes=2, state_bytes=12)


@dataclass(frozen=True)
class Cost:
    """What a training step takes of the device that has most to do.

    Attributes:
        compute_seconds: of its sums.
        communication_seconds: of the collectives over each of the mesh dimensions, and of the messages
            between stages, as far as they do not hide behind computing.
        bubble_seconds: for which it waits for other stages.
        memory_bytes: of each kind of tensors.
    """

    compute_seconds: float
    communication_seconds: Mapping[str, float]
    bubble_seconds: float
    memory_bytes: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The time of the step."""
        return self.compute_seconds + sum(self.communication_seconds.values()) + self.bubble_seconds

    @property
    def total_bytes(self) -> float:
        """The memory of all kinds."""
        return sum(self.memory_bytes.values())


class _Pass(NamedTuple):
    """What the way of a micro-batch through the network depends on."""

    mesh: MeshSpec
    examples: float
    cluster: Cluster
    element_bytes: int
    recompute: Recompute
    sequence_parallel: bool


@dataclass
class _Part:
    """What one block, or all that is in no block, takes of a device in the pass of a micro-batch.

    Attributes:
        forward: the seconds of its sums.
        again: the seconds of those that are computed again.
        exchanges: the seconds of its collectives, forward and backward, by their mesh dimensions.
        kept: the bytes of activations that are kept until the backward pass.
        held: the bytes of those that are computed again.
        sent: the bytes that go into it.
        variables: how many numbers its variables have.
        gradients: how many of these have gradients that are added up over which mesh dimensions.
    """

    forward: float = 0.0
    again: float = 0.0
    exchanges: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    kept: float = 0.0
    held: float = 0.0
    sent: float = 0.0
    variables: float = 0.0
    gradients: dict[Axes, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def backward(self) -> float:
        """The seconds of the backward pass, which has two products for each one of the forward pass."""
        return 2 * self.forward + self.again


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
        for axes in architecture.tensors.values():
            Plan("", two, splits).layout(axes)
        self._additions = list(architecture.additions(splits))
        self._products = {each.result: _axes_of_product(architecture, each) for each in architecture.sums}
        self._parts = cache(self._parts_of)  # the same for many ways to put them together

    def flops(self, batch_size: int) -> float:
        """Returns the operations of all products in a step, without those that are computed again."""
        sizes = {**self.architecture.sizes, BATCH: batch_size}
        return sum(3 * each.times * self._flops(each, sizes) for each in self.architecture.sums)

    def cost(
        self, mesh: MeshSpec, batch_size: int, cluster: Cluster, training: Training | None = None
    ) -> Cost:
        """Returns what a step on a batch costs.

        The slowest stage sets the pace, and is taken to have all that is in no block.

        Args:
            mesh: with the mesh dimensions of `splits`, and `stage` first if there are stages.
            batch_size: the number of examples in the global batch.
            cluster: the devices and what joins them.
            training: how a step is taken; float32, the whole batch at once where it is not given.
        """
        training = training or Training()
        stages, microbatches = _size(mesh, STAGE), training.microbatches
        how = training.element_bytes, training.recompute, training.sequence_parallel
        block, ends = self._parts(_Pass(mesh, batch_size / microbatches, cluster, *how))
        parts = (self.architecture.num_blocks / stages, block), (1.0, ends)
        compute = sum(times * (part.forward + part.backward) for times, part in parts)
        often, once = _gradient_seconds(parts, mesh, cluster, training)
        for times, part in parts:
            for over, seconds in part.exchanges.items():
                often[over] += times * seconds
        if stages > 1:  # each chunk sends forward to the next one, and backward to the one before
            link = cluster.inside if mesh.size <= cluster.devices_per_node else cluster.between
            message = link.latency_seconds + block.sent / link.bytes_per_second
            often[STAGE] = 2 * training.chunks * message
        bubble = (stages - 1) / training.chunks * (compute + sum(often.values()))
        communication = {
            over: microbatches * often[over] + once[over] for over in dict.fromkeys([*often, *once])
        }
        return Cost(microbatches * compute, communication, bubble, _memory(parts, mesh, training))

    def _parts_of(self, given: _Pass) -> tuple[_Part, _Part]:
        """Returns a block, and all that is in no block."""
        architecture, how = self.architecture, given.recompute
        shards = {"": 1, **dict(given.mesh.dims)}
        sizes = {**architecture.sizes, BATCH: given.examples}
        local = {axis: size / shards[self.splits.get(axis, "")] for axis, size in sizes.items()}
        tensors = architecture.tensors.items()
        counts = {name: math.prod(local[axis] for axis in axes) for name, axes in tensors}
        by_sequence = self._by_sequence(counts, given.mesh)
        parts = block, _ends = _Part(), _Part()
        held = {**(by_sequence if given.sequence_parallel else counts)}
        held.update({each.result: 0.0 for each in architecture.sums if not each.in_memory})
        for each in architecture.sums:
            part, seconds = parts[each.times == 1], self._seconds(each, local, held, given)
            size = given.element_bytes * each.kept * held[each.result]
            selected = how is Recompute.SELECTIVE and each.result in architecture.selective
            again = not each.in_memory or (part is block and (how is Recompute.FULL or selected))
            part.forward += seconds
            part.again += again * seconds
            part.held += size if again else 0.0
            part.kept += 0.0 if again else size
        if into_block := architecture.into_block:
            block.sent = given.element_bytes * by_sequence[into_block]
            block.kept += given.element_bytes * held[into_block] * (how is Recompute.FULL)
        for tensor, dims, times, is_gradient in self._additions:
            part = parts[times == 1]
            if tensor in architecture.variables:
                part.gradients[dims] += counts[tensor]
            else:  # forward exchanges are made again as well
                passes = 1 + (how is Recompute.FULL and part is block and not is_gradient)
                payload, among = given.element_bytes * counts[tensor], _among(dims, given.mesh, given.cluster)
                seconds = group_seconds(Kind.ALL_REDUCE, *among, payload, given.cluster)
                part.exchanges[", ".join(dims)] += passes * seconds
        for name in architecture.variables:
            parts[architecture.repeats.get(name, 1) == 1].variables += counts[name]
        return parts

    def _by_sequence(self, counts: Mapping[str, float], mesh: MeshSpec) -> dict[str, float]:
        """Returns the counts where the sequence is split of activations of which nothing else can be."""
        split = {axis for axis, name in self.splits.items() if name != BATCH}
        others = math.prod(size for name, size in mesh.dims if name not in (BATCH, STAGE))
        is_free = {
            name: BATCH in axes and not split & {*axes} for name, axes in self.architecture.tensors.items()
        }
        return {name: count / (others if is_free[name] else 1) for name, count in counts.items()}

    def _seconds(
        self, made: Sum, local: Mapping[str, float], counts: Mapping[str, float], given: _Pass
    ) -> float:
        """Returns the time of a sum, which is that of its product or of its way to memory."""
        device, operands = given.cluster.device, () if made.is_lookup else made.operands
        moved = given.element_bytes * sum(counts[name] for name in (made.result, *operands))
        flops_per_second = device.flops_per_second * device.efficiency
        return max(self._flops(made, local) / flops_per_second, moved / device.memory_bytes_per_second)

    def _flops(self, made: Sum, sizes: Mapping[str, float]) -> float:
        axes = self._products[made.result]
        return 2 * math.prod(sizes[axis] for axis in axes) if axes else 0.0


_Parts = Sequence[tuple[float, _Part]]  # a block, and all that is in no block, and how many a stage has


def _gradient_seconds(
    parts: _Parts, mesh: MeshSpec, cluster: Cluster, training: Training
) -> tuple[dict[str, float], dict[str, float]]:
    """Returns what gradients and gathered variables take, in each micro-batch and once in a step.

    Where it overlaps, what a block exchanges hides behind another block's pass.
    """
    often: dict[str, float] = defaultdict(float)
    once: dict[str, float] = defaultdict(float)
    block = parts[0][1]

    def exposed(dims: Axes, work: float, *kinds: Kind) -> float:
        seconds = 0.0
        for times, part in parts:
            payload = training.element_bytes * part.gradients[dims]
            taken = sum(_seconds_of(kind, payload, dims, mesh, cluster) for kind in kinds if payload)
            seconds += times * max(0.0, taken - work * (training.overlap and part is block))
        return seconds

    for dims in {**parts[0][1].gradients, **parts[1][1].gradients}:
        over, zero = ", ".join(dims), training.zero if BATCH in dims else Zero.NOTHING
        if zero is Zero.NOTHING:
            once[over] += exposed(dims, block.backward, Kind.ALL_REDUCE)
        elif zero is Zero.VARIABLES:
            often[over] += exposed(dims, block.forward, Kind.ALL_GATHER)
            often[over] += exposed(dims, block.backward, Kind.ALL_GATHER, Kind.REDUCE_SCATTER)
        else:
            once[over] += exposed(dims, block.forward, Kind.ALL_GATHER)
            added = often if zero is Zero.GRADIENTS else once
            added[over] += exposed(dims, block.backward, Kind.REDUCE_SCATTER)
    return often, once


def _seconds_of(kind: Kind, whole_bytes: float, dims: Axes, mesh: MeshSpec, cluster: Cluster) -> float:
    among = _among(dims, mesh, cluster)
    payload = whole_bytes / math.prod(among) if kind is Kind.REDUCE_SCATTER else whole_bytes
    return group_seconds(kind, *among, payload, cluster)


@cache
def _among(dims: Axes, mesh: MeshSpec, cluster: Cluster) -> tuple[int, int]:
    return group_sizes(mesh, dims, cluster.devices_per_node)


def _memory(parts: _Parts, mesh: MeshSpec, training: Training) -> dict[str, float]:
    (blocks, block), (_once, ends) = parts
    stages, chunks = _size(mesh, STAGE), training.chunks
    numbers = sum(times * part.variables for times, part in parts)

    def split_from(zero: Zero) -> float:
        return numbers / (_size(mesh, BATCH) if training.zero >= zero else 1)

    is_gathered = training.zero is Zero.VARIABLES and _size(mesh, BATCH) > 1
    gathered = 2 * block.variables if is_gathered else 0.0  # of this block and of the next one
    in_flight = stages + (stages - 1) / chunks if chunks > 1 else stages
    kept = min(training.microbatches, in_flight) * blocks * block.kept
    return {
        "variables": training.element_bytes * (split_from(Zero.VARIABLES) + gathered),
        "gradients": training.element_bytes * split_from(Zero.GRADIENTS),
        "optimizer": training.state_bytes * split_from(Zero.STATE),
        "activations": kept + block.held + ends.kept,
    }


def _size(mesh: MeshSpec, name: str) -> int:
    return dict(mesh.dims).get(name, 1)


def _axes_of_product(architecture: Architecture, made: Sum) -> frozenset[str]:
    """Returns all axes of a product, over which its multiplications run; none for other operations."""
    axes = {axis for its_axes in architecture.operand_axes(made) for axis in its_axes}
    is_product = len(made.operands) > 1 and not axes <= {*made.axes} and not made.is_lookup
    return frozenset(axes | {*made.axes}) if is_product else frozenset()
