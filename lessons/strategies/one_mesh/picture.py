"""The pictures of this lesson: a mesh over two processes, and what fits on a device."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node, node


def clients_picture() -> Figure:
    """Returns a mesh of 4 x 2 devices over two processes: equal colours are equal rows of the batch."""
    nodes: list[Node] = []
    text = []
    for device in range(8):
        client, row, column = device // 4, device // 2, device % 2
        name = _("device {index}", index=device)
        y = 20 + 40 * row + 24 * client
        nodes += cell((150 + 140 * column, y, 120, 30), Line(name), fill=row)
        text.append(f"{name}: batch {row}, model {column}")
        if column == 0:
            nodes.append(shapes.text(140, y + 20, f"batch {row}", anchor="end"))
        if row == 0:
            nodes.append(shapes.text(210 + 140 * column, 10, f"model {column}", anchor="middle"))
    for client in range(2):
        nodes.append(shapes.text(0, 62 + 104 * client, _("client {index}", index=client), bold=True))
    nodes.append(node("path", d="M0 106H420", stroke=shapes.SOFT_INK, stroke_dasharray="6 4"))
    title = _("A mesh of 4 x 2 devices over two processes")
    return framed(title, [Drawing(420, 196, tuple(nodes))], text)


def memory_picture() -> Figure:
    """Returns a matrix of 10 GB and its gradient beside the memory of a device: whole, and halved."""
    unit, left = 20, 170
    nodes: list[Node] = []
    text = []
    matrix, gradient = _("matrix"), _("gradient")
    for row, (holds, size) in enumerate(((_("the whole matrix"), 10), (_("half of the matrix"), 5))):
        y = 24 + 40 * row
        nodes.append(shapes.text(left - 8, y + 20, holds, anchor="end"))
        nodes += cell((left, y, size * unit, 30), Line(f"{matrix} {size} GB"), fill=0)
        nodes += cell((left + size * unit, y, size * unit, 30), Line(f"{gradient} {size} GB"), fill=2)
        text.append(f"{holds}: {matrix} {size} GB, {gradient} {size} GB")
    end = left + 16 * unit
    nodes.append(node("path", d=f"M{end} 18V100", stroke=shapes.INK, stroke_width=2, stroke_dasharray="6 4"))
    limit = _("a device: {size} GB", size=16)
    nodes.append(shapes.text(end, 12, limit, anchor="middle", bold=True))
    title = _("What one device must hold, beside what it has")
    return framed(title, [Drawing(left + 20 * unit + 4, 104, tuple(nodes))], [limit, *text])
