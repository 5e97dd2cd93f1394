"""The pictures of this lesson: blocks of a file and who reads them, a run over several meshes, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure as Sheet

from course_lib.i18n import _
from course_lib.pictures import arranging
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.cells import Line, Place, cell
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, framed, headed
from course_lib.pictures.shapes import Node
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Block
from course_lib.watch.curves import smoothed

_WIDTH, _HEIGHT, _WIDEST = 140.0, 84.0, 400.0  # two panels in a row


def file_picture(shape: tuple[int, int], written: Any, readers: Sequence[Any]) -> Figure:
    """Returns a matrix as blocks of a file, and on each mesh that reads it: equal colours are equal data.

    Args:
        shape: that of the whole matrix.
        written: the layout under which the file was written.
        readers: the layouts under which it is read.
    """
    from course_lib.devices.dtensor import layout_spec  # with TensorFlow

    stored = layout_spec(written).of(shape).blocks
    panels, lines = [_in_file(shape, stored)], [_("in the file: {blocks}", blocks=_told(stored, 1))]
    for layout in map(layout_spec, readers):
        panels.append(_on_mesh(shape, stored, layout))
        blocks = _told(layout.of(shape).blocks)
        lines.append(_("read on {mesh}: {blocks}", mesh=layout.mesh, blocks=blocks))
    drawing = arranging.flowing(panels, 24, _WIDEST)
    return headed(_("Blocks of a checkpoint, and who reads them"), [drawing], lines, width=_WIDEST)


def _told(blocks: Sequence[Block], most: int | None = None) -> str:
    return " | ".join(" ".join(map(str, block.devices[:most])) for block in blocks)


def _in_file(shape: tuple[int, int], stored: Sequence[Block]) -> Drawing:
    nodes: list[Node] = []
    for at, block in enumerate(stored):
        nodes += cell(_place(shape, block.index), Line(str(block.devices[0]), bold=True), fill=at)
    return arranging.titled(_("in the file, written by"), Drawing(_WIDTH, _HEIGHT, tuple(nodes)))


def _on_mesh(shape: tuple[int, int], stored: Sequence[Block], layout: LayoutSpec) -> Drawing:
    nodes: list[Node] = []
    for block in layout.of(shape).blocks:
        for at, source in enumerate(stored):
            common = [_common(*pair) for pair in zip(block.index, source.index, strict=True)]
            if all(part.start < part.stop for part in common):
                nodes += cell(_place(shape, common), fill=at, stroke="none")
        nodes += cell(_place(shape, block.index), Line(_told([block]), size=10, bold=True), fill="none")
    return arranging.titled(_("read on {mesh}", mesh=layout.mesh), Drawing(_WIDTH, _HEIGHT, tuple(nodes)))


def _common(ours: slice, theirs: slice) -> slice:
    return slice(max(ours.start, theirs.start), min(ours.stop, theirs.stop))


def _place(shape: tuple[int, int], index: Sequence[slice]) -> Place:
    (top, height), (left, width) = (
        (full * part.start / size, full * (part.stop - part.start) / size)
        for part, size, full in zip(index, shape, (_HEIGHT, _WIDTH), strict=True)
    )
    return left, top, width, height


def run_picture(
    records: Sequence[Mapping[str, Any]], one: Sequence[Mapping[str, Any]], moves: Mapping[int, str]
) -> Picture:
    """Returns the loss of a run, a line where it moved to another mesh, and below it that of one device.

    Args:
        records: of the run that moved, step by step.
        one: of the same steps on one device.
        moves: after which step it moved, and what the new mesh is called.
    """
    sheet = Sheet(figsize=(8, 3.6), layout="constrained")
    plot = sheet.subplots()
    for name, run, width, colour in (
        (_("one device"), one, 6.0, "#BBBBBB"),
        (_("the run that moves"), records, 1.6, STYLES[0][0]),
    ):
        steps = [record["step"] for record in run]
        plot.plot(
            steps, smoothed([record["loss"] for record in run]), linewidth=width, color=colour, label=name
        )
    for step, mesh in moves.items():
        plot.axvline(step, color=STYLES[1][0], linestyle="dashed", linewidth=1)
        plot.text(step + 2, 0.99, mesh, transform=plot.get_xaxis_transform(), va="top")
    plot.set_xlim(0, len(records))
    plot.set_ylim(0, 0.78)
    plot.set_xlabel(_("step"))
    plot.set_ylabel(_("loss (mean of the last 20 steps)"))
    plot.legend(loc="lower left", frameon=False)
    text = _("Picture: the loss of a run that moves from mesh to mesh, and that of one device.")
    moved = _("It moved after the steps {steps}.", steps=", ".join(str(step) for step in moves if step))
    return Picture.of(sheet, text, moved)


def costs_picture(panels: Mapping[str, tuple[str, Mapping[str, Mapping[str, float]]]]) -> Figure:
    """Returns costs as bars: under each heading one for each scheme, on one scale.

    Args:
        panels: by its heading the name of a cost, and for each scheme its costs; seconds are told in µs.
    """
    groups = []
    for heading, (name, schemes) in panels.items():
        bars = []
        for scheme, costs in schemes.items():
            told = f"{1e6 * costs[name]:.0f} µs" if name == "seconds" else f"{costs[name] / 1000:,.0f} kB"
            bars.append(Bar(scheme, costs[name], told))
        groups.append(Bars(heading, tuple(bars)))
    return framed(_("What a step costs"), [bars_drawing(groups)], bar_lines(groups))
