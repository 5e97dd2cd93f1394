"""What a training step costs by arithmetic: the time of computing, of collectives and of waiting, and memory.

A batch is cut into micro-batches. The mesh dimension `batch` splits their examples, `stage` the blocks of the
network, and all others what a plan says. Sources: stages https://arxiv.org/abs/2104.04473, ZeRO
https://arxiv.org/abs/1910.02054, split sequences and recomputation https://arxiv.org/abs/2205.05198.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.specs.architecture import Architecture, Sum, Zero
from course_lib.specs.collectives import Kind
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan
from lessons.scale.machines import Cluster, Number, group_seconds, group_sizes

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
class Ways:
    """Ways to take a training step: each array has an entry for each of them.

    Attributes:
        meshes: the different meshes.
        mesh: the place of a way's mesh among them.
        microbatches: as `Training` has them, and so on.
        recompute: the place in `Recompute`.
    """

    meshes: Sequence[MeshSpec]
    mesh: npt.NDArray[np.int64]
    microbatches: npt.NDArray[np.int64]
    chunks: npt.NDArray[np.int64]
    zero: npt.NDArray[np.int64]
    recompute: npt.NDArray[np.int64]
    sequence_parallel: npt.NDArray[np.int64]

    @classmethod
    def of(cls, meshes: Sequence[MeshSpec], rows: Sequence[tuple[int, ...]]) -> Ways:
        """Returns the ways whose numbers are the rows, in the order of the attributes."""
        return cls(meshes, *np.array(rows, dtype=np.int64).reshape(-1, 6).T)

    def only(self, kept: npt.NDArray[Any]) -> Ways:
        """Returns those that are marked, or those at some places."""
        columns = self.mesh, self.microbatches, self.chunks, self.zero, self.recompute, self.sequence_parallel
        return Ways(self.meshes, *(column[kept] for column in columns))

    def passes(self) -> tuple[Ways, npt.NDArray[np.int64]]:
        """Returns the different passes of a micro-batch, and the place of each way's own among them.

        A pass does not depend on chunks and ZeRO.
        """
        parts = (self.mesh, 1), (self.recompute, 4), (self.sequence_parallel, 2), (self.microbatches, 2**32)
        key = np.zeros(len(self.mesh), np.int64)
        for column, most in parts:
            key = key * most + column
        _keys, first, own = np.unique(key, return_index=True, return_inverse=True)
        return self.only(first), own

    def size(self, name: str) -> npt.NDArray[np.int64]:
        """Returns the size of a mesh dimension, 1 where a mesh has none of that name."""
        return np.array([dict(mesh.dims).get(name, 1) for mesh in self.meshes])[self.mesh]

    def training(self, at: int, shared: Training) -> Training:
        """Returns one of them, with what all share."""
        return replace(
            shared,
            microbatches=int(self.microbatches[at]),
            recompute=[*Recompute][self.recompute[at]],
            sequence_parallel=bool(self.sequence_parallel[at]),
            zero=Zero(self.zero[at]),
            chunks=int(self.chunks[at]),
        )


@dataclass(frozen=True)
class Cost:
    """What a training step takes of the device that has most to do; of many ways to take it, as arrays.

    Attributes:
        compute_seconds: of its sums.
        communication_seconds: of the collectives over each of the mesh dimensions, and of the messages
            between stages, as far as they do not hide behind computing.
        bubble_seconds: for which it waits for other stages.
        memory_bytes: of each kind of tensors.
    """

    compute_seconds: Number
    communication_seconds: Mapping[str, Number]
    bubble_seconds: Number
    memory_bytes: Mapping[str, Number]

    @cached_property
    def seconds(self) -> Number:
        """The time of the step."""
        return self.compute_seconds + sum(self.communication_seconds.values()) + self.bubble_seconds

    @cached_property
    def total_bytes(self) -> Number:
        """The memory of all kinds."""
        return sum(self.memory_bytes.values())

    def at(self, place: int) -> Cost:
        """Returns the cost of one of many ways."""

        def one(value: Number) -> float:
            return float(value[place] if np.ndim(value) else value)

        return Cost(
            one(self.compute_seconds),
            {over: one(seconds) for over, seconds in self.communication_seconds.items()},
            one(self.bubble_seconds),
            {kind: one(size) for kind, size in self.memory_bytes.items()},
        )


class _Step:
    """Ways to take a step on a cluster, with what they share."""

    def __init__(self, ways: Ways, cluster: Cluster, training: Training) -> None:
        self.ways, self.cluster, self.training = ways, cluster, training
        self.stages, self.data = ways.size(STAGE), ways.size(BATCH)
        self._groups: dict[Axes, tuple[Number, Number]] = {}

    def seconds(self, kind: Kind, whole_bytes: Number, dims: Axes) -> Number:
        """Returns the time of a collective, by the bytes of what is summed or gathered in all."""
        inside, between = self._among(dims)
        payload = whole_bytes / (inside * between) if kind is Kind.REDUCE_SCATTER else whole_bytes
        return group_seconds(kind, inside, between, payload, self.cluster)

    def message_seconds(self, num_bytes: Number) -> Number:
        """Returns the time of a message to the next stage."""
        sizes = np.array([mesh.size for mesh in self.ways.meshes])[self.ways.mesh]
        times = (
            link.latency_seconds + num_bytes / link.bytes_per_second
            for link in (self.cluster.inside, self.cluster.between)
        )
        return np.where(sizes <= self.cluster.devices_per_node, *times)

    def _among(self, dims: Axes) -> tuple[Number, Number]:
        if dims not in self._groups:
            sizes = [group_sizes(mesh, dims, self.cluster.devices_per_node) for mesh in self.ways.meshes]
            inside, between = np.array(sizes)[self.ways.mesh].T
            self._groups[dims] = inside, between
        return self._groups[dims]


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

    forward: Number = 0.0
    again: Number = 0.0
    exchanges: dict[str, Number] = field(default_factory=lambda: defaultdict(float))
    kept: Number = 0.0
    held: Number = 0.0
    sent: Number = 0.0
    variables: Number = 0.0
    gradients: dict[Axes, Number] = field(default_factory=lambda: defaultdict(float))

    @property
    def backward(self) -> Number:
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

    def flops(self, batch_size: int) -> float:
        """Returns the operations of all products in a step, without those that are computed again."""
        sizes = {**self.architecture.sizes, BATCH: batch_size}
        return float(sum(3 * each.times * self._flops(each, sizes) for each in self.architecture.sums))

    def cost(
        self, mesh: MeshSpec, batch_size: int, cluster: Cluster, training: Training | None = None
    ) -> Cost:
        """Returns what a step on a batch costs.

        Args:
            mesh: with the mesh dimensions of `splits`, and `stage` first if there are stages.
            batch_size: the number of examples in the global batch.
            cluster: the devices and what joins them.
            training: how a step is taken; float32, the whole batch at once where it is not given.
        """
        training = training or Training()
        recompute = [*Recompute].index(training.recompute)
        row = 0, training.microbatches, training.chunks, training.zero, recompute, training.sequence_parallel
        return self.costs(Ways.of([mesh], [row]), batch_size, cluster, training).at(0)

    def costs(self, ways: Ways, batch_size: int, cluster: Cluster, training: Training) -> Cost:
        """Returns what steps on a batch cost, each taken in its way, as arrays.

        The slowest stage sets the pace, and is taken to have all that is in no block.

        Args:
            ways: how each is taken.
            batch_size: the number of examples in the global batch.
            cluster: the devices and what joins them.
            training: what the ways share: the numbers of bytes, and whether exchanges overlap.
        """
        passes, own = ways.passes()
        step = _Step(passes, cluster, training)
        block, ends = self._parts(step, batch_size / passes.microbatches)
        parts = (self.architecture.num_blocks / step.stages, block), (1.0, ends)
        compute = sum(times * (part.forward + part.backward) for times, part in parts)
        often, once = _gradient_seconds(parts, step)
        for times, part in parts:
            for over, seconds in part.exchanges.items():
                often[over] = often[over] + times * seconds
        stages, zero = step.stages[own], ways.zero
        exchanges = {over: often[over][zero, own] for over in dict.fromkeys([*often, *once])}
        communication = {
            over: ways.microbatches * seconds + once[over][zero, own] for over, seconds in exchanges.items()
        }
        waited = compute[own] + sum(exchanges.values())
        if np.any(stages > 1):  # each chunk sends forward to the next one, and backward to the one before
            messages = 2 * ways.chunks * np.where(stages > 1, step.message_seconds(block.sent)[own], 0.0)
            communication[STAGE] = ways.microbatches * messages
            waited = waited + messages
        bubble = (stages - 1) / ways.chunks * waited
        memory = _memory(parts, step, ways, own)
        return Cost(ways.microbatches * compute[own], communication, bubble, memory)

    def _parts(self, step: _Step, examples: Number) -> tuple[_Part, _Part]:
        """Returns a block, and all that is in no block."""
        architecture, ways, element_bytes = self.architecture, step.ways, step.training.element_bytes
        local = self._local_sizes(ways, examples)
        tensors = architecture.tensors.items()
        counts = {name: math.prod(local[axis] for axis in axes) for name, axes in tensors}
        by_sequence = self._by_sequence(counts, ways)
        parts = block, _ends = _Part(), _Part()
        held = {
            name: np.where(ways.sequence_parallel, by_sequence[name], count) for name, count in counts.items()
        }
        held.update({each.result: 0.0 for each in architecture.sums if not each.in_memory})
        fully = ways.recompute == [*Recompute].index(Recompute.FULL)
        selectively = ways.recompute == [*Recompute].index(Recompute.SELECTIVE)
        for each in architecture.sums:
            part, seconds = parts[each.times == 1], self._seconds(each, local, held, step)
            size = element_bytes * each.kept * held[each.result]
            selected = fully | selectively if each.result in architecture.selective else fully
            again = 0 if part is not block else selected
            if not each.in_memory:
                again = 1
            part.forward += seconds
            part.again += again * seconds
            part.held += again * size
            part.kept += (1 - again) * size
        if into_block := architecture.into_block:
            block.sent = element_bytes * by_sequence[into_block]
            block.kept += element_bytes * held[into_block] * fully
        for tensor, dims, times, is_gradient in self._additions:
            part = parts[times == 1]
            if tensor in architecture.variables:
                part.gradients[dims] += counts[tensor]
            else:  # forward exchanges are made again as well
                passes = 1 + fully * (part is block and not is_gradient)
                seconds = step.seconds(Kind.ALL_REDUCE, element_bytes * counts[tensor], dims)
                part.exchanges[", ".join(dims)] += passes * seconds
        for name in architecture.variables:
            parts[architecture.repeats.get(name, 1) == 1].variables += counts[name]
        return parts

    def _local_sizes(self, ways: Ways, examples: Number) -> dict[str, Number]:
        """Returns the size of each axis on a device."""
        sizes = {**self.architecture.sizes, BATCH: examples}
        return {
            axis: size / ways.size(self.splits[axis]) if axis in self.splits else size
            for axis, size in sizes.items()
        }

    def _by_sequence(self, counts: Mapping[str, Number], ways: Ways) -> dict[str, Number]:
        """Returns the counts where the sequence is split of activations of which nothing else can be."""
        split = {axis for axis, name in self.splits.items() if name != BATCH}
        names = {name for mesh in ways.meshes for name in mesh.names} - {BATCH, STAGE}
        others = math.prod(ways.size(name) for name in sorted(names))
        is_free = {
            name: BATCH in axes and not split & {*axes} for name, axes in self.architecture.tensors.items()
        }
        return {name: count / (others if is_free[name] else 1) for name, count in counts.items()}

    def _seconds(
        self, made: Sum, local: Mapping[str, Number], counts: Mapping[str, Number], step: _Step
    ) -> Number:
        """Returns the time of a sum, which is that of its product or of its way to memory."""
        device, operands = step.cluster.device, () if made.is_lookup else made.operands
        moved = step.training.element_bytes * sum(counts[name] for name in (made.result, *operands))
        flops_per_second = device.flops_per_second * device.efficiency
        return np.maximum(self._flops(made, local) / flops_per_second, moved / device.memory_bytes_per_second)

    def _flops(self, made: Sum, sizes: Mapping[str, Number]) -> Number:
        axes = self._products[made.result]
        return 2 * math.prod(sizes[axis] for axis in axes) if axes else 0.0


_Parts = Sequence[tuple[Number, _Part]]  # a block, and all that is in no block, and how many a stage has


def _gradient_seconds(parts: _Parts, step: _Step) -> tuple[dict[str, Number], dict[str, Number]]:
    """Returns what gradients and gathered variables take, in each micro-batch and once in a step.

    Both are `[ZeRO, passes]`. Where it overlaps, what a block exchanges hides behind another block's pass.
    """
    nothing = np.zeros((len(Zero), len(step.stages)))
    often: dict[str, Number] = defaultdict(lambda: nothing)
    once: dict[str, Number] = defaultdict(lambda: nothing)
    block = parts[0][1]

    def exposed(dims: Axes, work: Number, *kinds: Kind) -> Number:
        seconds = nothing[0]
        for times, part in parts:
            if dims in part.gradients:
                payload = step.training.element_bytes * part.gradients[dims]
                taken = sum(step.seconds(kind, payload, dims) for kind in kinds)
                hidden = work if step.training.overlap and part is block else 0.0
                seconds = seconds + times * np.maximum(0.0, taken - hidden)
        return seconds

    for dims in {**parts[0][1].gradients, **parts[1][1].gradients}:
        over, whole = ", ".join(dims), exposed(dims, block.backward, Kind.ALL_REDUCE)
        if BATCH not in dims:
            once[over] = once[over] + whole
            continue
        gathered = exposed(dims, block.forward, Kind.ALL_GATHER)
        scattered = exposed(dims, block.backward, Kind.REDUCE_SCATTER)
        both = exposed(dims, block.backward, Kind.ALL_GATHER, Kind.REDUCE_SCATTER)
        once[over] = once[over] + np.stack([whole, gathered + scattered, gathered, nothing[0]])
        often[over] = often[over] + np.stack([nothing[0], nothing[0], scattered, gathered + both])
    return often, once


def _memory(
    parts: _Parts, step: _Step, ways: Ways, own: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.float64]]:
    """Returns the bytes of each kind of tensors; `own` is the place of each way's pass."""
    (blocks, block), (_once, ends) = parts
    stages, data, training = step.stages[own], step.data[own], step.training
    numbers = sum(times * part.variables for times, part in parts)[own]
    of_block, block_kept, others_kept = (
        np.broadcast_to(value, step.stages.shape)[own]
        for value in (block.variables, blocks * block.kept, block.held + ends.kept)
    )

    def split_from(zero: Zero) -> Number:
        return numbers / np.where(ways.zero >= zero, data, 1)

    is_gathered = (ways.zero == Zero.VARIABLES) & (data > 1)
    gathered = 2 * of_block * is_gathered  # of this block and of the next one
    in_flight = stages + np.where(ways.chunks > 1, (stages - 1) / ways.chunks, 0.0)
    kept = np.minimum(ways.microbatches, in_flight) * block_kept
    return {
        "variables": training.element_bytes * (split_from(Zero.VARIABLES) + gathered),
        "gradients": training.element_bytes * split_from(Zero.GRADIENTS),
        "optimizer": training.state_bytes * split_from(Zero.STATE),
        "activations": kept + others_kept,
    }


def _axes_of_product(architecture: Architecture, made: Sum) -> frozenset[str]:
    """Returns all axes of a product, over which its multiplications run; none for other operations."""
    axes = {axis for its_axes in architecture.operand_axes(made) for axis in its_axes}
    is_product = len(made.operands) > 1 and not axes <= {*made.axes} and not made.is_lookup
    return frozenset(axes | {*made.axes}) if is_product else frozenset()
