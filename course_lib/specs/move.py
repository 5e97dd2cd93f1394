"""Moves: a tensor before and after a change of layout, and from whom each device gets what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from course_lib.specs.drawing import DrawsItself
from course_lib.specs.sharding import Index, Sharding


@dataclass(frozen=True)
class Move(DrawsItself):
    """A tensor of which devices hold other parts than before. It draws itself.

    >>> from course_lib import MeshSpec
    >>> from course_lib.specs.layout import LayoutSpec
    >>> mesh = MeshSpec([("x", 2)])
    >>> rows, columns = LayoutSpec(["x", "unsharded"], mesh), LayoutSpec(["unsharded", "x"], mesh)
    >>> [source for _index, _block, source in Move(rows.of((4, 4)), columns.of((4, 4))).pieces(0)]
    [0, 1]
    """

    before: Sharding
    after: Sharding

    def pieces(self, device_id: int) -> Iterator[tuple[Index, int, int]]:
        """Yields each part of what a device holds afterwards: where, of which block, and from which device.

        That is the device itself where it held the block, else the one of its holders that is nearest.
        """
        place = self.after.mesh.coords(device_id).items()
        for number, block in enumerate(self.before.blocks):
            both = zip(block.index, self.after.shards[device_id], strict=True)
            index = tuple(slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in both)
            if all(part.start < part.stop for part in index):
                alike = [len(place & self.after.mesh.coords(holder).items()) for holder in block.devices]
                yield index, number, block.devices[alike.index(max(alike))]
