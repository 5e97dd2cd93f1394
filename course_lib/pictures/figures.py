"""Pictures of meshes and layouts: pure functions from specs, or from real components, to a `Figure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures import svg
from course_lib.pictures.drawings import (
    annotated_tensor,
    device_card,
    mesh_drawing,
    plain_card,
    tensor_drawing,
    values_drawing,
)
from course_lib.pictures.svg import Drawing
from course_lib.pictures.text import (
    MOST_VALUES,
    array_text,
    block_lines,
    holding_cells,
    join_sentences,
    label_of,
    mesh_grid,
)
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import (
    Array,
    Block,
    Verdict,
    assemble,
    blocks_of,
    observed_holdings,
    predicted_holdings,
    verdict,
)

_MOST_AXES = 3
_MOST_COLUMNS_ON_ONE_LINE = 12  # characters of an index that fit under a device
_LEAST_WIDTH, _MAX_WIDTH, _GAP, _THUMBNAIL = 440.0, 700.0, 28.0, 44.0


@dataclass(frozen=True)
class Figure:
    """A picture and the text that says the same.

    Attributes:
        svg: the picture, a whole SVG image.
        text: the same in letters of fixed width: what a terminal shows, a screen reader reads and the
            tests compare.
    """

    svg: str
    text: str

    def to_text(self) -> str:
        """Returns the picture as text of fixed width."""
        return self.text

    def _repr_svg_(self) -> tuple[str, dict[str, str]]:
        return self.svg, {"alt": self.text}

    def __repr__(self) -> str:
        return self.text


def mesh_figure(mesh: MeshSpec) -> Figure:
    """Returns the picture of a mesh: its devices and their position along each mesh dimension.

    >>> mesh_figure(MeshSpec([("x", 2), ("y", 3)]))
    Mesh x 2 × y 3: 6 devices
    <BLANKLINE>
           y=0  y=1  y=2
      x=0    0    1    2
      x=1    3    4    5
    """
    title = _("Mesh {mesh}: {size} devices", mesh=mesh, size=mesh.size)
    grid = mesh_grid(mesh, [str(device_id) for device_id in range(mesh.size)])
    drawing = svg.titled(title, mesh_drawing(mesh, [plain_card(device_id) for device_id in range(mesh.size)]))
    return Figure(svg.document(drawing, title), "\n".join([title, "", *grid]))


def layout_figure(
    layout: LayoutSpec, global_shape: Sequence[int], *, element_bytes: int | None = None
) -> Figure:
    """Returns the picture of a layout: the tensor cut in blocks, and the block that each device holds.

    Args:
        layout: the layout.
        global_shape: the shape of the whole tensor, of 3 axes at most.
        element_bytes: how many bytes an element takes (4 for float32), to say what a device holds.

    Raises:
        CourseError: the layout does not fit the tensor, or the tensor has more than 3 axes.
    """
    tensor = _tensor_part(layout, global_shape)
    devices = _predicted_part(_("Devices"), layout, global_shape)
    title = _("Layout {layout} on the mesh {mesh}", layout=layout, mesh=layout.mesh)
    return _figure(title, _summary(layout, global_shape, element_bytes), [tensor, devices])


def observed_figure(layout: LayoutSpec, components: Sequence[npt.ArrayLike]) -> Figure:
    """Returns the picture of real components: which block each device really holds, with values if few.

    Give it `fetch_layout(tensor)` and `unpack(tensor)` of `course_lib.dtensor`. A replica whose values differ
    from those of the first device with the same block is marked with a question mark.

    Args:
        layout: the layout that the tensor has.
        components: `[...] local` each, one a device, in the order of the devices.

    Raises:
        CourseError: another number of components than devices, components of unlike shapes, or more than 3
            axes.
    """
    whole = assemble(layout, components)
    tensor = _tensor_part(layout, whole.shape, whole)
    devices = _observed_part(_("Devices"), layout, whole, components)
    title = _("Real components with the layout {layout} on the mesh {mesh}", layout=layout, mesh=layout.mesh)
    return _figure(title, _summary(layout, whole.shape, whole.itemsize), [tensor, devices])


def comparison_figure(
    layout: LayoutSpec, whole: npt.ArrayLike, components: Sequence[npt.ArrayLike]
) -> Figure:
    """Returns the prediction beside the real components, and whether they agree.

    Args:
        layout: the layout that the prediction follows from.
        whole: the tensor that was distributed, `[...] global`.
        components: what the devices really hold, `[...] local` each, in the order of the devices.

    Raises:
        CourseError: the layout does not fit the tensor, or another number of components than devices.
    """
    array = np.asarray(whole)
    parts = [
        _tensor_part(layout, array.shape, array),
        _predicted_part(_("Prediction"), layout, array.shape),
        _observed_part(_("Reality"), layout, array, components),
    ]
    title = _("Prediction and reality: layout {layout} on the mesh {mesh}", layout=layout, mesh=layout.mesh)
    result = verdict(layout, array, components)
    return _figure(title, _summary(layout, array.shape, array.itemsize), parts, result)


@dataclass(frozen=True)
class _Part:
    """A part of a figure: a heading with a drawing, and with lines of text that say the same."""

    heading: str
    drawing: Drawing
    lines: Sequence[str]


def _figure(title: str, summary: str, parts: Sequence[_Part], result: Verdict | None = None) -> Figure:
    drawings = svg.flowing([svg.titled(part.heading, part.drawing) for part in parts], _GAP, _MAX_WIDTH)
    width = max(drawings.width, _LEAST_WIDTH)
    head = svg.lines_of_text([title], size=14, max_width=width)
    rows = [head, svg.lines_of_text([summary], size=12, max_width=width, fill=svg.SOFT_INK), drawings]
    text = [title, summary]
    for part in parts:
        text += ["", part.heading, *part.lines]
    if result is not None:
        mark, fill = ("✓", svg.INK) if result.agrees else ("✗", svg.ALARM)
        rows.append(svg.lines_of_text([f"{mark} {result.text}"], size=13, max_width=width, fill=fill))
        text += ["", result.text]
    return Figure(svg.document(svg.stacked(rows, 12), title), "\n".join(text))


def _summary(layout: LayoutSpec, global_shape: Sequence[int], element_bytes: int | None) -> str:
    local_shape = layout.local_shape(global_shape)
    sentences = [
        _(
            "Global shape {global_shape}, local shape {local_shape}.",
            global_shape=tuple(global_shape),
            local_shape=local_shape,
        )
    ]
    if element_bytes is not None:
        num_bytes = element_bytes * int(np.prod(local_shape, dtype=np.int64))
        sentences.append(_("Bytes on each device: {num_bytes}.", num_bytes=f"{num_bytes:,}"))
    sentences.append(_("Copies of each element: {copies}.", copies=layout.replicas))
    return join_sentences(sentences)


def _tensor_part(layout: LayoutSpec, global_shape: Sequence[int], whole: Array | None = None) -> _Part:
    _check_axes(global_shape)
    blocks = blocks_of(layout, global_shape)
    values = None if whole is None else [array_text(whole[block.index]) for block in blocks]
    drawing = annotated_tensor(
        global_shape,
        blocks,
        lambda axis: f"{axis_text(axis, global_shape[axis])} · {layout.sharding_specs[axis]}",
    )
    return _Part(_("Tensor"), drawing, block_lines(blocks, values))


def axis_text(axis: int, length: int) -> str:
    """Returns the name of a tensor's axis with its length."""
    return _("axis {axis}, length {length}", axis=axis, length=length)


def _predicted_part(heading: str, layout: LayoutSpec, global_shape: Sequence[int]) -> _Part:
    blocks = blocks_of(layout, global_shape)
    cards = []
    for device_id, number in enumerate(predicted_holdings(blocks)):
        thumbnail = tensor_drawing(global_shape, blocks, side=_THUMBNAIL, only=number)
        cards.append(
            device_card(device_id, number, blocks[number].label, thumbnail, _index_lines(blocks[number]))
        )
    lines = mesh_grid(layout.mesh, holding_cells(blocks, predicted_holdings(blocks)))
    return _Part(heading, mesh_drawing(layout.mesh, cards), lines)


def _observed_part(
    heading: str, layout: LayoutSpec, whole: Array, components: Sequence[npt.ArrayLike]
) -> _Part:
    blocks = blocks_of(layout, whole.shape)
    holdings = observed_holdings(blocks, whole, components)
    arrays = [np.asarray(component) for component in components]
    expected = predicted_holdings(blocks)
    cards = [
        _observed_card(
            device_id, blocks, whole.shape, array, held=holdings[device_id], expected=expected[device_id]
        )
        for device_id, array in enumerate(arrays)
    ]
    strangers = [
        _("  Device {device_id} holds no block: {values}", device_id=device_id, values=array_text(array))
        for device_id, array in enumerate(arrays)
        if holdings[device_id] is None
    ]
    lines = [*mesh_grid(layout.mesh, holding_cells(blocks, holdings)), *strangers]
    return _Part(heading, mesh_drawing(layout.mesh, cards), lines)


def _observed_card(
    device_id: int,
    blocks: Sequence[Block],
    global_shape: Sequence[int],
    component: Array,
    *,
    held: int | None,
    expected: int,
) -> Drawing:
    label, wrong = label_of(blocks, held), held != expected
    if component.size <= MOST_VALUES:
        return device_card(device_id, held, label, values_drawing(component, held), [], wrong=wrong)
    thumbnail = tensor_drawing(global_shape, blocks, side=_THUMBNAIL, only=-1 if held is None else held)
    return device_card(device_id, held, label, thumbnail, [str(component.shape)], wrong=wrong)


def _index_lines(block: Block) -> list[str]:
    """Returns the index on one line, or on one line an axis if it is long."""
    if len(block.index_text) <= _MOST_COLUMNS_ON_ONE_LINE:
        return [block.index_text]
    return [f"{line}," for line in block.index_text.split(", ")[:-1]] + [block.index_text.split(", ")[-1]]


def _check_axes(global_shape: Sequence[int]) -> None:
    if len(global_shape) > _MOST_AXES:
        raise CourseError(
            _("A tensor of {num_axes} axes cannot be drawn.", num_axes=len(global_shape)),
            allowed=_("0 to {most} axes", most=_MOST_AXES),
            cure=_(
                "Reshape the tensor, or look at the layout without a picture: layout.shards(global_shape)."
            ),
        )
