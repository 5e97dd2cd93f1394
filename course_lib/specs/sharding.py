"""Blocks: the distinct parts into which a layout cuts a tensor, labelled A, B, C, and who holds them."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import Index, LayoutSpec

Array = npt.NDArray[Any]


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
        return "[" + ", ".join(f"{part.start}:{part.stop}" for part in self.index) + "]"


def blocks_of(layout: LayoutSpec, global_shape: Sequence[int]) -> tuple[Block, ...]:
    """Returns the blocks into which `layout` cuts a tensor, in the order of the tensor.

    >>> from course_lib import LayoutSpec, MeshSpec
    >>> layout = LayoutSpec(["y"], MeshSpec([("x", 2), ("y", 2)]))
    >>> [(block.label, block.index_text, block.devices) for block in blocks_of(layout, [6])]
    [('A', '[0:3]', (0, 2)), ('B', '[3:6]', (1, 3))]

    Raises:
        CourseError: the layout does not fit the tensor.
    """
    shards = layout.shards(global_shape)
    holders: dict[tuple[int, ...], list[int]] = {}
    for device_id in range(layout.mesh.size):
        holders.setdefault(layout.block(device_id), []).append(device_id)
    return tuple(
        Block(block_label(number), shards[devices[0]], tuple(devices))
        for number, (_position, devices) in enumerate(sorted(holders.items()))
    )


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


def predicted_holdings(blocks: Sequence[Block]) -> tuple[int, ...]:
    """Returns, for each device, the number of the block that it is to hold."""
    held = {device_id: number for number, block in enumerate(blocks) for device_id in block.devices}
    return tuple(held[device_id] for device_id in sorted(held))


def observed_holdings(
    blocks: Sequence[Block], whole: npt.ArrayLike, components: Sequence[npt.ArrayLike]
) -> tuple[int | None, ...]:
    """Returns, for each device, the number of the block that its real component equals.

    Where several blocks have equal values, the one that the device is to hold wins.

    Args:
        blocks: the blocks of the whole tensor.
        whole: the tensor, `[...] global`.
        components: the real component of each device, `[...] local`.

    Returns:
        One entry a device; None for a component that equals no block.

    Raises:
        CourseError: another number of components than devices.
    """
    predicted = predicted_holdings(blocks)
    require_components(components, len(predicted))
    parts = [np.asarray(whole)[block.index] for block in blocks]
    return tuple(
        next((at for at in (expected, *range(len(parts))) if same_values(parts[at], component)), None)
        for expected, component in zip(predicted, components, strict=True)
    )


@dataclass(frozen=True)
class Verdict:
    """Whether the real components are the predicted ones.

    Attributes:
        agrees: whether all are.
        text: the same as a sentence that names the devices that differ.
        holdings: for each device the number of the block that it really holds, or None for no block.
    """

    agrees: bool
    text: str
    holdings: tuple[int | None, ...]


def verdict(layout: LayoutSpec, whole: npt.ArrayLike, components: Sequence[npt.ArrayLike]) -> Verdict:
    """Returns whether the real components are those that the layout predicts.

    Raises:
        CourseError: the layout does not fit the tensor, or another number of components than devices.
    """
    blocks = blocks_of(layout, np.shape(whole))
    predicted, observed = predicted_holdings(blocks), observed_holdings(blocks, whole, components)
    wrong = [device_id for device_id, block in enumerate(observed) if block != predicted[device_id]]
    if not wrong:
        sentence = ngettext(
            "The {count} real component equals the prediction.",
            "All {count} real components equal the prediction.",
            len(observed),
        )
        return Verdict(True, sentence, observed)
    devices = ", ".join(map(str, wrong))
    sentence = ngettext(
        "{count} of {size} real components differs from the prediction: device {devices}.",
        "{count} of {size} real components differ from the prediction: devices {devices}.",
        len(wrong),
        size=len(observed),
        devices=devices,
    )
    return Verdict(False, sentence, observed)


def assemble(layout: LayoutSpec, components: Sequence[npt.ArrayLike]) -> Array:
    """Returns the whole tensor, `[...] global`, made of the first component of each block.

    Raises:
        CourseError: another number of components than devices, or components that do not fit together.
    """
    require_components(components, layout.mesh.size)
    arrays = [np.asarray(component) for component in components]
    require_local_shapes(layout, arrays)
    global_shape = [length * layout.num_shards(axis) for axis, length in enumerate(arrays[0].shape)]
    whole = np.empty(global_shape, arrays[0].dtype)
    for block in blocks_of(layout, global_shape):
        whole[block.index] = arrays[block.devices[0]]
    return whole


def same_values(one: npt.ArrayLike, other: npt.ArrayLike) -> bool:
    """Whether two arrays have one shape and equal values; NaN equals NaN."""
    first, second = np.asarray(one), np.asarray(other)
    numeric = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    return np.array_equal(first, second, equal_nan=numeric)


def require_components(components: Sequence[npt.ArrayLike], num_devices: int) -> None:
    """Checks that there is one component for each device.

    Raises:
        CourseError: there are more or fewer.
    """
    if len(components) != num_devices:
        raise CourseError(
            ngettext(
                "{count} component was given for the mesh.",
                "{count} components were given for the mesh.",
                len(components),
            ),
            allowed=ngettext(
                "{count} component, one for each device",
                "{count} components, one for each device",
                num_devices,
            ),
            cure=_("Give one array for each device, in the order of the devices."),
        )


def require_local_shapes(layout: LayoutSpec, arrays: Sequence[Array]) -> None:
    """Checks that all components have one shape, with as many axes as the layout.

    Raises:
        CourseError: one of them has another.
    """
    for device_id, array in enumerate(arrays):
        if array.ndim != layout.num_axes or array.shape != arrays[0].shape:
            raise CourseError(
                _(
                    "The component of device {device_id} has the shape {local_shape}.",
                    device_id=device_id,
                    local_shape=array.shape,
                ),
                allowed=ngettext(
                    "components of one shape with {count} axis; device 0 has {first}",
                    "components of one shape with {count} axes; device 0 has {first}",
                    layout.num_axes,
                    first=arrays[0].shape,
                ),
                cure=_("Give every device a component of the same shape."),
            )
