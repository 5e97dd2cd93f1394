"""What a training step costs by arithmetic: the time of collectives and of computing, a device's memory.

The collectives are those of `Architecture.exchanges`. Devices compute one sum after another and wait for each
collective, so the time is an upper bound for a program that does both at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course_lib.specs.architecture import Architecture, Sum
from course_lib.specs.collectives import Kind
from course_lib.specs.machines import Cluster, Device, group_seconds, group_sizes
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan


@dataclass(frozen=True)
class Training:
    """How a step is taken, apart from the plan.

    Attributes:
        element_bytes: of a number in variables, gradients and activations.
        state_bytes: of the optimizer for each number of a variable, such as two averages of float32.
        microbatches: into how many parts a batch is cut, one after another, whose gradients are added up.
        recompute: whether a repeated block's activations are computed again on the way back, and not kept.
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
        self._axes = architecture.tensors
        self._products = {each.result: _axes_of_product(architecture, each) for each in architecture.sums}

    def fits(self, mesh: MeshSpec, batch_size: int, training: Training) -> bool:
        """Returns whether the batch divides into its parts, and each split axis among its mesh dimension."""
        sizes, shards = (
            {**self.architecture.sizes, BATCH: batch_size // training.microbatches},
            dict(mesh.dims),
        )
        whole = all(sizes[axis] % shards[name] == 0 for axis, name in self.splits.items())
        return whole and batch_size % training.microbatches == 0

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
        shards, splits = {"": 1, **dict(mesh.dims)}, self.splits
        sizes = {**self.architecture.sizes, BATCH: batch_size / training.microbatches}
        local = {axis: size / shards[splits.get(axis, "")] for axis, size in sizes.items()}
        counts = {name: math.prod(local[axis] for axis in axes) for name, axes in self._axes.items()}
        return Cost(
            self._compute(local, counts, cluster.device, training),
            self._communication(mesh, counts, cluster, training),
            dict(self._memory(counts, training)),
        )

    def _compute(
        self, local: Mapping[str, float], counts: Mapping[str, float], device: Device, training: Training
    ) -> float:
        """Returns the time of all sums, each that of its product or its way to memory; back it is twice."""
        seconds = 0.0
        for each in self.architecture.sums:
            axes = self._products[each.result]
            flops = 2 * math.prod(local[axis] for axis in axes) if axes else 0.0
            moved = training.element_bytes * sum(counts[name] for name in (each.result, *each.operands))
            passes = each.times * (4 if training.recompute and each.times > 1 else 3)
            seconds += passes * max(
                flops / (device.flops_per_second * device.efficiency), moved / device.memory_bytes_per_second
            )
        return training.microbatches * seconds

    def _communication(
        self, mesh: MeshSpec, counts: Mapping[str, float], cluster: Cluster, training: Training
    ) -> dict[str, float]:
        found: dict[str, float] = {}
        groups: dict[tuple[str, ...], tuple[int, int]] = {}
        for tensor, names, times, is_gradient in self._additions:
            if names not in groups:
                groups[names] = group_sizes(mesh, names, cluster.devices_per_node)
            payload = counts[tensor] * training.element_bytes
            seconds = group_seconds(Kind.ALL_REDUCE, *groups[names], payload, cluster)
            passes = 2 if training.recompute and times > 1 and not is_gradient else 1
            if tensor not in self.architecture.variables:
                passes *= training.microbatches
            over = ", ".join(names)
            found[over] = found.get(over, 0.0) + times * passes * seconds
        return found

    def _memory(self, counts: Mapping[str, float], training: Training) -> Iterator[tuple[str, float]]:
        repeats = self.architecture.repeats
        variables = sum(repeats.get(name, 1) * counts[name] for name in self.architecture.variables)
        yield "variables", variables * training.element_bytes
        yield "gradients", variables * training.element_bytes
        yield "optimizer", variables * training.state_bytes
        sums = self.architecture.sums
        kept = sum(counts[each.result] * (1 if training.recompute else each.times) for each in sums)
        if training.recompute:  # what goes into each block, and all of one block
            kept += counts.get(self.architecture.into_block, 0.0) * max(each.times for each in sums)
        yield "activations", kept * training.element_bytes


def _axes_of_product(architecture: Architecture, made: Sum) -> frozenset[str]:
    """Returns all axes of a product, over which its multiplications run; none for other operations."""
    axes = {axis for its_axes in architecture.operand_axes(made) for axis in its_axes}
    is_product = len(made.operands) > 1 and not axes <= {*made.axes}
    return frozenset(axes | {*made.axes}) if is_product else frozenset()
