"""The text form of figures: what a terminal shows, a screen reader reads and a golden test compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.pictures.grid import Plane, planes
from course_lib.specs.components import Array, Components
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding

MOST_VALUES = 12
UNKNOWN = "?"


def form_value(value: object) -> str:
    """Returns one element in few characters.

    >>> form_value(3.0), form_value(0.123456), form_value(7), form_value(True)
    ('3', '0.1235', '7', 'True')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def array_text(array: Array, form: Callable[[object], str] = form_value) -> str:
    """Returns the values of an array on one line, or its shape if they are too many.

    Args:
        array: the values.
        form: writes one of them.

    >>> import numpy as np
    >>> array_text(np.arange(6.0).reshape(2, 3)), array_text(np.zeros((100, 8)))
    ('[[0 1 2] [3 4 5]]', '(100, 8)')
    """
    return _nested(array.tolist(), form) if array.size <= MOST_VALUES else str(array.shape)


def mesh_grid(mesh: MeshSpec, cells: Sequence[str]) -> list[str]:
    r"""Returns the lines of a grid with one cell a device and the position along each mesh dimension.

    >>> print("\n".join(mesh_grid(MeshSpec([("x", 2), ("y", 2)]), ["A", "B", "A", "B"])))
           y=0  y=1
      x=0    A    B
      x=1    A    B
    """
    lines: list[str] = []
    for plane in planes(mesh):
        lines += [*([""] if lines else []), *_plane_lines(plane, cells)]
    return lines


def holding_cells(sharding: Sharding, holdings: Sequence[int | None]) -> list[str]:
    """Returns for each device its number and the label of the block that it holds, all of one width."""
    labels = [label_of(sharding, block) for block in holdings]
    width, label_width = len(str(len(labels) - 1)), max(map(len, labels))
    return [f"{device_id:>{width}}: {label:<{label_width}}" for device_id, label in enumerate(labels)]


def label_of(sharding: Sharding, block: int | None) -> str:
    """Returns the label of a block, or a question mark for data that is no block."""
    return UNKNOWN if block is None else sharding.blocks[block].label


def block_lines(sharding: Sharding, values: Sequence[str] | None = None) -> list[str]:
    """Returns one line a block: its label, where it lies, who holds it, and its values if they are given."""
    label_width = max(len(block.label) for block in sharding.blocks)
    index_width = max(len(block.index_text) for block in sharding.blocks)
    lines = []
    for number, block in enumerate(sharding.blocks):
        devices = devices_text(block.devices)
        line = f"  {block.label:<{label_width}}  {block.index_text:<{index_width}}  {devices}"
        lines.append(line if values is None else f"{line}  {values[number]}")
    return lines


def stranger_lines(observed: Components) -> list[str]:
    """Returns one line for each device that holds no block, with its values."""
    return [
        _("  Device {device_id} holds no block: {values}", device_id=device_id, values=array_text(component))
        for device_id, component in enumerate(observed.components)
        if observed.holdings[device_id] is None
    ]


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
    others = ", ".join(str(other) for other in block.devices if other != device_id)
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


def _plane_lines(plane: Plane, cells: Sequence[str]) -> list[str]:
    rows = [[cells[device_id] for device_id in row] for row in plane.devices]
    left = max(map(len, [plane.name, *plane.rows]))
    width = max(map(len, [*plane.columns, *(cell for row in rows for cell in row)]))
    table = [(plane.name, plane.columns), *zip(plane.rows, rows, strict=True)]
    indent = "  " if left else ""
    return [
        "  " + (f"{name:<{left}}{indent}" + "  ".join(f"{cell:>{width}}" for cell in row)).rstrip()
        for name, row in table
    ]


def _nested(values: object, form: Callable[[object], str]) -> str:
    if isinstance(values, list):
        return "[" + " ".join(_nested(value, form) for value in values) + "]"
    return form(values)
