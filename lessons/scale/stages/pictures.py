"""Pictures of `stages`: two ways to cut a network, and the planner's errors."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.figure

from course_lib.i18n import _, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node, node, number

_DEVICES, _CELL, _HEIGHT, _GAP, _SIZE = 4, 52.0, 24.0, 26.0, 12.0

Points = Sequence[tuple[float, float]]


def two_cuts() -> Figure:
    """Returns four blocks on four devices, cut through the blocks, and between them."""
    through, between = _("through the blocks"), _("between the blocks")
    says = [
        _("Each box is what one device holds of a block; the number and the color are the device's."),
        _("↔: all-reduces of all four devices. ↓: one device sends to the next."),
    ]
    lines = [
        labelled(through, _("4 blocks on 4 devices each, and all-reduces of all 4 in every block")),
        labelled(between, _("1 block on each device, and a message from each device to the next")),
    ]
    drawn = [
        arranging.titled(through, _cut(through=True)),
        arranging.titled(between, _cut(through=False)),
    ]
    row = arranging.beside(drawn, 90)
    return headed(_("Two ways to cut a network"), [row], [*says, *lines], width=620, says=says)


def _cut(*, through: bool) -> Drawing:
    """Returns a row for each block, and below it what crosses the cut."""
    label = max(text_width(_block(at), _SIZE) for at in range(_DEVICES)) + 10
    across, nodes = _DEVICES * _CELL, list[Node]()
    for block in range(_DEVICES):
        y = block * (_HEIGHT + _GAP)
        nodes.append(shapes.text(0, y + _HEIGHT / 2 + 4, _block(block), size=_SIZE))
        owners = range(_DEVICES) if through else [block]
        width = across / len(owners)
        for at, device in enumerate(owners):
            nodes += cell((label + at * width, y, width, _HEIGHT), Line(str(device)), fill=device)
        middle, below = label + across / 2, y + _HEIGHT + 4
        if through:
            down = number(below + _GAP / 2 - 4)
            path = f"M{number(label + 4)} {down}h{number(across - 8)}m-6 -5l6 5l-6 5"
            path += f"M{number(label + 10)} {number(below + _GAP / 2 - 9)}l-6 5l6 5"
        elif block < _DEVICES - 1:
            path = f"M{number(middle)} {number(below)}v{number(_GAP - 9)}m-5 -6l5 6l5 -6"
        else:
            continue
        nodes.append(node("path", d=path, fill="none", stroke=shapes.INK, stroke_width=2))
    return Drawing(label + across, _DEVICES * (_HEIGHT + _GAP) - _GAP / 2, tuple(nodes))


def _block(at: int) -> str:
    return _("block {number}", number=at)


def error_over_width(errors: Points) -> Picture:
    """Returns by how many percent planned steps are too long or too short, over the width of the network."""
    drawn = matplotlib.figure.Figure(figsize=(6, 3), layout="constrained")
    axes = drawn.subplots()
    axes.axhline(0, color="#888888", linewidth=1)
    axes.semilogx(*zip(*errors, strict=True), color=STYLES[0][0], marker="o")
    widths = [errors[0][0], errors[len(errors) // 2][0], errors[-1][0]]
    axes.set_xticks(widths, [f"{width:,}" for width in widths])
    axes.minorticks_off()
    axes.set_xlabel(_("width of the network"))
    axes.set_ylabel(_("error of the planner (%)"))
    axes.grid(visible=True, alpha=0.3)
    told = [labelled(f"{width:,}", f"{error:+.0f} %") for width, error in errors]
    text = _("Picture: the planner's error over the width of the network.")
    return Picture.of(drawn, text, _("; ").join(told))
