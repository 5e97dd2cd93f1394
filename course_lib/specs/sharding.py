"""Shardings: a tensor of one shape under one layout, and so who holds which part of it."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.drawing import DrawsItself

if TYPE_CHECKING:
    from course_lib.specs.layout import LayoutSpec
    from course_lib.specs.mesh import MeshSpec

Array = npt.NDArray[Any]
Index = tuple[slice, ...]
FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Block:
    """One part of a tensor. Devices that hold the same block are replicas of each other.

    Attributes:
        label: A, B, C, ... in the order of the tensor.
        index: where it lies in the whole tensor, one slice an axis.
        devices: who holds it, in the order of the devices.
    """

    label: str
    index: Index
    devices: tuple[int, ...]

    @property
    def index_text(self) -> str:
        """The index as Python writes it, for example `[0:4, 0:3]`."""
        return index_text(self.index)


@dataclass(frozen=True, init=False, repr=False)
class Sharding(DrawsItself):
    """A tensor of one global shape under one layout: `layout.of(global_shape)`. It draws itself.

    >>> from course_lib import MeshSpec
    >>> from course_lib.specs.layout import LayoutSpec
    >>> sharding = LayoutSpec(["y"], MeshSpec([("x", 2), ("y", 2)])).of((6,))
    >>> sharding.local_shape, sharding.copies, sharding.holdings
    ((3,), 2, (0, 1, 0, 1))
    >>> [(block.label, block.index_text, block.devices) for block in sharding.blocks]
    [('A', '[0:3]', (0, 2)), ('B', '[3:6]', (1, 3))]
    >>> sharding.bytes_per_device()
    12

    Attributes:
        layout: which mesh dimension splits which axis.
        global_shape: the shape of the whole tensor.
        element_bytes: how many bytes an element takes, or None if that does not matter.

    Raises:
        CourseError: another number of axes than the layout has, or an axis that does not
            divide.
    """

    layout: LayoutSpec
    global_shape: tuple[int, ...]
    element_bytes: int | None = field(compare=False)

    def __init__(
        self, layout: LayoutSpec, global_shape: Iterable[int], element_bytes: int | None = None
    ) -> None:
        lengths = tuple(map(int, global_shape))
        _check_lengths(layout, lengths)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "global_shape", lengths)
        object.__setattr__(self, "element_bytes", element_bytes)

    @property
    def mesh(self) -> MeshSpec:
        """The mesh that the tensor lives on."""
        return self.layout.mesh

    @property
    def copies(self) -> int:
        """How many devices hold each element: those along the mesh dimensions that split no axis."""
        return self.mesh.size // math.prod(map(self.layout.num_shards, range(self.layout.num_axes)))

    @cached_property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of one device's component."""
        return tuple(length // self.layout.num_shards(axis) for axis, length in enumerate(self.global_shape))

    @cached_property
    def shards(self) -> dict[int, Index]:
        """For each device the part of the tensor that it holds, as one slice an axis."""
        return {
            device_id: tuple(
                slice(place * length, (place + 1) * length)
                for place, length in zip(self.layout.block(device_id), self.local_shape, strict=True)
            )
            for device_id in range(self.mesh.size)
        }

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The distinct parts into which the tensor is cut, in the order of the tensor."""
        holders: dict[tuple[int, ...], list[int]] = {}
        for device_id in range(self.mesh.size):
            holders.setdefault(self.layout.block(device_id), []).append(device_id)
        return tuple(
            Block(block_label(number), self.shards[devices[0]], tuple(devices))
            for number, (_place, devices) in enumerate(sorted(holders.items()))
        )

    @cached_property
    def holdings(self) -> tuple[int, ...]:
        """For each device the number of the block that it holds."""
        held = {device_id: number for number, block in enumerate(self.blocks) for device_id in block.devices}
        return tuple(held[device_id] for device_id in range(self.mesh.size))

    def bytes_per_device(self) -> int:
        """Returns how many bytes one device holds; of float32 where the sharding has no `element_bytes`."""
        return (self.element_bytes or FLOAT32_BYTES) * math.prod(self.local_shape)

    def split(self, whole: npt.ArrayLike) -> list[Array]:
        """Returns the component of each device, `[...] local` each, in the order of the devices.

        Args:
            whole: the tensor, `[...] global`.

        Raises:
            CourseError: it has another shape.
        """
        array = np.asarray(whole)
        self.require_shape(array)
        return [array[index] for index in self.shards.values()]

    def require_shape(self, whole: Array) -> None:
        """Checks that `whole` has the global shape.

        Raises:
            CourseError: it has another.
        """
        if whole.shape != self.global_shape:
            raise CourseError(
                _("The tensor has the shape {shape}.", shape=whole.shape),
                allowed=str(self.global_shape),
                cure=_("Give the whole tensor, or make the sharding for its shape: layout.of(tensor.shape)."),
            )

    def __repr__(self) -> str:
        num_bytes = "" if self.element_bytes is None else f", element_bytes={self.element_bytes}"
        return f"{self.layout!r}.of({self.global_shape}{num_bytes})"


def index_text(index: Index) -> str:
    """Returns an index as Python writes it, for example `[0:4, 0:3]`."""
    return "[" + ", ".join(f"{part.start}:{part.stop}" for part in index) + "]"


def block_label(number: int) -> str:
    """Returns the letters of the block `number`, counted from 0.

    >>> [block_label(number) for number in (0, 25, 26, 63)]
    ['A', 'Z', 'AA', 'BL']
    """
    letters = string.ascii_uppercase
    more, last = divmod(number, len(letters))
    return letters[last] if more == 0 else block_label(more - 1) + letters[last]


def numbered_tensor(global_shape: Sequence[int]) -> npt.NDArray[np.float32]:
    """Returns the tensor of the numbers 0, 1, 2, ..., whose values say which part of it one sees.

    >>> numbered_tensor((2, 3)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    return np.arange(math.prod(global_shape), dtype=np.float32).reshape(tuple(global_shape))


def _check_lengths(layout: LayoutSpec, global_shape: tuple[int, ...]) -> None:
    if len(global_shape) != layout.num_axes:
        raise CourseError(
            ngettext(
                "The layout {layout} has {count} axis, the tensor {global_shape} has {given}.",
                "The layout {layout} has {count} axes, the tensor {global_shape} has {given}.",
                layout.num_axes,
                layout=layout,
                global_shape=global_shape,
                given=len(global_shape),
            ),
            allowed=_("as many entries in the layout as the tensor has axes"),
            cure=_('Give each axis a mesh dimension or "unsharded".'),
        )
    for axis, length in enumerate(global_shape):
        num_shards = layout.num_shards(axis)
        if length % num_shards:
            raise CourseError(
                ngettext(
                    "Axis {axis} of length {length} does not split in {count} part over {name!r}.",
                    "Axis {axis} of length {length} does not split in {count} parts over {name!r}.",
                    num_shards,
                    axis=axis,
                    length=length,
                    name=layout.sharding_specs[axis],
                ),
                allowed=_("lengths that divide by {num_shards}", num_shards=num_shards),
                cure=_("Change the length, pad it, or leave this axis unsharded."),
            )
