"""Blocks: the distinct parts into which a layout cuts a tensor, labelled A, B, C."""

from __future__ import annotations

import string
from dataclasses import dataclass

Index = tuple[slice, ...]


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


def block_label(number: int) -> str:
    """Returns the letters of the block `number`, counted from 0.

    >>> [block_label(number) for number in (0, 25, 26, 63)]
    ['A', 'Z', 'AA', 'BL']
    """
    letters = string.ascii_uppercase
    more, last = divmod(number, len(letters))
    return letters[last] if more == 0 else block_label(more - 1) + letters[last]
