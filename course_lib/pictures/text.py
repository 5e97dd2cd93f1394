"""The text form of figures: what a terminal shows, a screen reader reads and a golden test compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course_lib.i18n import _, join_sentences, ngettext, num_columns
from course_lib.specs.components import Array
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.move import Move
from course_lib.specs.sharding import Sharding, index_text

MOST_VALUES = 12


def form_value(value: object) -> str:
    """Returns one element in few characters.

    >>> form_value(3.0), form_value(0.123456), form_value(7), form_value(True)
    ('3', '0.1235', '7', 'True')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def array_text(array: Array) -> str:
    """Returns the values of an array on one line, or its shape if they are too many.

    >>> import numpy as np
    >>> array_text(np.arange(6.0).reshape(2, 3)), array_text(np.zeros((100, 8)))
    ('[[0 1 2] [3 4 5]]', '(100, 8)')
    """
    return _nested(array.tolist()) if array.size <= MOST_VALUES else str(array.shape)


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns rows as lines with columns in line. Each says what it is about, since it may be heard alone.

    >>> table([["device 0", "x=0", "A"], ["device 10", "x=10", "B"]])
    ['  device 0   x=0   A', '  device 10  x=10  B']
    """
    rows = list(rows)
    widths = [max(map(num_columns, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell + " " * (width - num_columns(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def holding_lines(
    sharding: Sharding, holdings: Sequence[int | None], components: Sequence[Array] = ()
) -> list[str]:
    """Returns a line a device: who it is, and the block that it holds, or what it holds instead of one.

    Args:
        sharding: the blocks.
        holdings: for each device the number of its block, None for none of them.
        components: what the devices hold, `[...] local` each; empty if each holds a block.
    """
    held = [
        _("no block: {values}", values=array_text(components[device_id]))
        if block is None
        else _("block {label}", label=sharding.blocks[block].label)
        for device_id, block in enumerate(holdings)
    ]
    named = named_devices(sharding.mesh)
    return table([*device, content] for device, content in zip(named, held, strict=True))


def relayout_title(before: Sharding, after: Sharding) -> str:
    """Returns what is done: a tensor gets another layout."""
    values = {"source": before.layout, "target": after.layout, "mesh": after.mesh}
    return _("From the layout {source} to {target} on the mesh {mesh}", **values)


def move_lines(move: Move) -> list[str]:
    """Returns for each device what it holds after a move, and from which device it gets that."""
    lines = []
    for device_id, place in enumerate(named_devices(move.after.mesh)):
        pieces = [
            _("{index} stays", index=index_text(index))
            if source == device_id
            else _("{index} from {source}", index=index_text(index), source=source)
            for index, _block, source in move.pieces(device_id)
        ]
        lines.append([*place, _("; ").join(pieces)])
    return table(lines)


def block_lines(sharding: Sharding, whole: Array | None = None) -> list[str]:
    """Returns a line a block: its label, where it lies, who holds it, and its values if there are any."""
    return table(
        [
            block.label,
            block.index_text,
            devices_text(block.devices),
            "" if whole is None else array_text(whole[block.index]),
        ]
        for block in sharding.blocks
    )


def summary(sharding: Sharding) -> str:
    """Returns the shapes, the bytes if they are known, and the copies as sentences."""
    shapes = _(
        "Global shape {global_shape}, local shape {local_shape}.",
        global_shape=sharding.global_shape,
        local_shape=sharding.local_shape,
    )
    sentences = [shapes, _("Copies of each element: {copies}.", copies=sharding.copies)]
    if sharding.element_bytes is not None:
        num_bytes = f"{sharding.bytes_per_device():,}"
        sentences.insert(1, _("Bytes on each device: {num_bytes}.", num_bytes=num_bytes))
    return join_sentences(sentences)


def device_sentences(sharding: Sharding, device_id: int) -> str:
    """Returns what a device holds, and who holds the same, as sentences."""
    block = sharding.blocks[sharding.holdings[device_id]]
    holds = _(
        "Device {device} at {coords} holds block {block}, {index}.",
        device=device_id,
        coords=place_text(sharding.mesh, device_id),
        block=block.label,
        index=block.index_text,
    )
    others = ", ".join([str(other) for other in block.devices if other != device_id])
    same = _("The same block is on devices: {devices}.", devices=others)
    return join_sentences([holds, same if others else _("No other device holds this block.")])


def mark(*, agrees: bool) -> str:
    """Returns the sign for what agrees, or for what does not."""
    return "✓" if agrees else "✗"


def marked(sentence: str, *, agrees: bool) -> str:
    """Returns a sentence behind that sign."""
    return f"{mark(agrees=agrees)} {sentence}"


def place_text(mesh: MeshSpec, device_id: int) -> str:
    """Returns the position of a device along each mesh dimension.

    >>> place_text(MeshSpec([("x", 2), ("y", 2)]), 2)
    'x=1, y=0'
    """
    return ", ".join(f"{name}={place}" for name, place in mesh.coords(device_id).items())


def axis_text(axis: int, length: int) -> str:
    """Returns the name of a tensor's axis with its length."""
    return _("axis {axis}, length {length}", axis=axis, length=length)


def axis_notes(sharding: Sharding) -> list[str]:
    """Returns for each axis where the picture draws it, its length, and what splits it."""
    arrows = ["↗", "↓", "→"][-len(sharding.global_shape) :]
    rows = zip(arrows, sharding.global_shape, sharding.layout.sharding_specs, strict=False)
    return [f"{arrow} {axis_text(axis, length)} · {name}" for axis, (arrow, length, name) in enumerate(rows)]


def devices_text(devices: Sequence[int]) -> str:
    """Returns the numbers of the devices as words.

    >>> devices_text([3]), devices_text([0, 2])
    ('device 3', 'devices 0, 2')
    """
    numbers = ", ".join(map(str, devices))
    return ngettext("device {devices}", "devices {devices}", len(devices), devices=numbers)


def named_devices(mesh: MeshSpec) -> list[list[str]]:
    """Returns of each device its number, and its position along each mesh dimension."""
    return [[devices_text([device_id]), place_text(mesh, device_id)] for device_id in range(mesh.size)]


def _nested(values: object) -> str:
    if isinstance(values, list):
        return "[" + " ".join(_nested(value) for value in values) + "]"
    return form_value(values)
