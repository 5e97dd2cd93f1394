"""Neural networks as sums over named axes, and the collectives of their training step under a plan.

A product of two tensors adds up over the axes that its result lacks. Where a plan splits such an axis, each
device has a part of every sum: the rule "partial sum" of `communication.product`. The way back follows from
that. Held against what TensorFlow runs: tests/tf/test_block.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.plan import BATCH, Axes, Plan


class Zero(IntEnum):
    """What is split over `batch` too, each kind beside those before it. All three are also called FSDP."""

    NOTHING = 0
    STATE = 1  # of the optimizer
    GRADIENTS = 2
    VARIABLES = 3


@dataclass(frozen=True)
class Sum:
    """What makes a tensor out of others: it adds up over the axes that the tensor itself lacks.

    An operation on each element adds up over none, such as the sum of two tensors or a softmax.

    Attributes:
        result: the name of the tensor that is made.
        axes: its axes.
        operands: the names of the tensors that it is made of.
        renamed: axes of the operands that have another name here, so that a tensor meets itself.
        times: how often the network has it: once in each of its blocks.
        is_lookup: whether it takes rows of a table, and multiplies nothing.
        in_memory: whether it gets there, or is made anew within the operation that reads it.
        kept: how many numbers are kept for the backward pass for each of its own: 0.5 for a mask alone.
    """

    result: str
    axes: Axes
    operands: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    times: int = 1
    is_lookup: bool = False
    in_memory: bool = True
    kept: float = 1.0


@dataclass(frozen=True)
class Exchange:
    """A collective of a training step, and how often the step takes it.

    Attributes:
        tensor: what is added up; a gradient has the name of its tensor.
        collective: among whom, and how much.
        times: once in each block.
        is_gradient: whether it is taken on the way back.
    """

    tensor: str
    collective: Collective
    times: int
    is_gradient: bool


@dataclass(frozen=True, eq=False)
class Architecture:
    """A neural network that is declared by the axes of its tensors.

    Attributes:
        name: what it is called.
        inputs: the axes of what it is given, which has no gradient.
        variables: the axes of each variable.
        sums: how each other tensor is made, in order; the last one is the loss.
        sizes: the size of each axis, without the batch.
        repeats: how often it has each variable that belongs to a repeated block.
        into_block: the tensor that goes into each block.
        selective: the results that take much memory and little time, for selective recomputation.
    """

    name: str
    inputs: Mapping[str, Axes]
    variables: Mapping[str, Axes]
    sums: tuple[Sum, ...]
    sizes: Mapping[str, int]
    repeats: Mapping[str, int] = field(default_factory=dict)
    into_block: str = ""
    selective: Axes = ()

    @property
    def num_blocks(self) -> int:
        """How many blocks follow each other."""
        return max((each.times for each in self.sums), default=1)

    @cached_property
    def tensors(self) -> dict[str, Axes]:
        """The axes of every tensor."""
        return {**self.inputs, **self.variables, **{each.result: each.axes for each in self.sums}}

    def exchanges(self, plan: Plan, batch_size: int, zero: Zero = Zero.NOTHING) -> Iterator[Exchange]:
        """Yields the collectives of a training step in float32, forward and then backward.

        What reaches a tensor from several readers is added up on its device, and then once among devices.
        Under ZeRO each device adds up its part of a gradient alone, and gathers the variable once a step. A
        variable of which `batch` can split no other axis stays whole.

        Raises:
            CourseError: the plan splits two axes of a tensor over one mesh dimension, or an axis that does
                not divide.
        """
        held = plan.shardings(self.tensors, {**self.sizes, BATCH: batch_size})
        splits = {axis: name for axis, name in plan.splits.items() if plan.num_shards(axis) > 1}
        for tensor, dims, times, is_gradient in self.additions(splits):
            payload, data = held[tensor].bytes_per_device(), plan.num_shards(BATCH)
            kinds = {Kind.ALL_REDUCE: payload}
            if zero and dims == (plan.splits[BATCH],) and tensor in self.variables:
                free = [axis for axis in self.variables[tensor] if axis not in splits]
                if any(self.sizes[axis] % data == 0 for axis in free):
                    kinds = {Kind.REDUCE_SCATTER: payload // data, Kind.ALL_GATHER: payload}
            for kind, size in kinds.items():
                yield Exchange(tensor, Collective(kind, plan.mesh, dims, size), times, is_gradient)

    def additions(self, splits: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...], int, bool]]:
        """Yields what is added up: tensor, mesh dimensions, how often, and whether on the way back."""
        back: dict[tuple[str, tuple[str, ...]], int] = {}
        for each in self.sums:
            if dims := _added_over(splits, each.axes, self.operand_axes(each)):
                yield each.result, dims, each.times, False
        for each in reversed(self.sums):
            given = self.operand_axes(each)
            for name, axes in zip(each.operands, given, strict=True):
                if name not in self.inputs:
                    back[name, _added_over(splits, axes, [each.axes, *given])] = each.times
        yield from ((name, dims, times, True) for (name, dims), times in back.items() if dims)

    def operand_axes(self, made: Sum) -> list[Axes]:
        """Returns the axes of what a tensor is made of, as they are called there."""
        tensors, names = self.tensors, dict(made.renamed)
        return [tuple(names.get(axis, axis) for axis in tensors[name]) for name in made.operands]


def _added_over(splits: Mapping[str, str], axes: Axes, given: Sequence[Axes]) -> tuple[str, ...]:
    """Returns the mesh dimensions that split what some tensors have and another one lacks."""
    lacking = (axis for its_axes in given for axis in its_axes if axis not in axes)
    return tuple(dict.fromkeys(splits[axis] for axis in lacking if axis in splits))
