"""The pictures of this lesson: a block cut between two devices, partial sums, bytes sent, and a loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure as Sheet

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.cells import Line, cell, colour
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure, framed, headed
from course_lib.pictures.shapes import Node, node, number

_WIDTH, _TENSOR, _BAR, _MATRIX, _GAP, _SIZE = 600.0, 132.0, 22.0, 44.0, 26.0, 11.0
_BOTH = "0 1"  # both devices hold all of it


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the block, or several that are cut alike.

    Attributes:
        name: what it is called.
        axes: its axes, in words.
        height: of its rectangle.
        cut: "columns" or "rows"; "" where both devices hold the whole.
        exchange: the all-reduce between it and the next one; "" where there is none.
    """

    name: str
    axes: str
    height: float
    cut: str = ""
    exchange: str = ""


def block_picture(*, exchanges: bool = False) -> Figure:
    """Returns the tensors of a block from the top down; with `exchanges` also where the devices add up."""
    drawings, lines = [], []
    for at, (title, tensors) in enumerate(_sublayers().items()):
        drawings.append(arranging.titled(title, _drawn(tensors, 2 * at, exchanges)))
        lines += ["", title]
        for each in tensors:
            lines.append(f"  {each.name} [{each.axes}]: {_told(each)}")
            lines += [f"  {each.exchange}"] if exchanges and each.exchange else []
    says = [_("The numbers in a rectangle are the devices that hold it.")]
    if exchanges:
        says.append(_("Arrows down stand for the forward pass, arrows up for the backward pass."))
    title, drawing = _("A transformer block on two devices"), arranging.flowing(drawings, _GAP, _WIDTH)
    return headed(title, [drawing], [*says, *lines], width=_WIDTH, says=says)


def _sublayers() -> dict[str, list[_Tensor]]:
    """Returns the two sublayers of a block, each from its input to its output."""
    tokens, down, up = _("tokens, features"), _("↓ all-reduce"), _("↑ all-reduce")
    return {
        _("Attention"): [
            _Tensor("x", tokens, _BAR, exchange=up),
            _Tensor("query, key, value", _("features, heads"), _MATRIX, "columns"),
            _Tensor(_("each head by itself"), _("tokens, heads"), _BAR, "columns"),
            _Tensor("out", _("heads, features"), _MATRIX, "rows", down),
            _Tensor(_("is added to x"), tokens, _BAR),
        ],
        _("Feed-forward network"): [
            _Tensor("x", tokens, _BAR, exchange=up),
            _Tensor("up", _("features, hidden"), _MATRIX, "columns"),
            _Tensor(_("hidden units"), _("tokens, hidden"), _BAR, "columns"),
            _Tensor("down", _("hidden, features"), _MATRIX, "rows", down),
            _Tensor(_("is added to x"), tokens, _BAR),
        ],
    }


def _told(tensor: _Tensor) -> str:
    """Returns who holds what."""
    if tensor.cut == "columns":
        return _("device 0 left, device 1 right")
    return _("device 0 above, device 1 below") if tensor.cut else _("replicated")


def _drawn(tensors: list[_Tensor], first: int, exchanges: bool) -> Drawing:
    """Returns tensors under each other; their halves have the colours `first` and the one after it."""
    nodes: list[Node] = []
    top = 0.0
    for each in tensors:
        nodes += _rectangles(each, top, first)
        middle = top + each.height / 2
        nodes.append(shapes.text(_TENSOR + 8, middle - 1, each.name, size=_SIZE, bold=True))
        nodes.append(shapes.text(_TENSOR + 8, middle + 12, each.axes, size=10, fill=shapes.SOFT_INK))
        top += each.height + _GAP
        if each is not tensors[-1]:
            content, ink = "↓", shapes.SOFT_INK
            if exchanges and each.exchange:
                content, ink = each.exchange, shapes.ALARM
            place = _TENSOR / 2, top - _GAP / 2 + 4
            nodes.append(shapes.text(*place, content, size=12, fill=ink, anchor="middle", bold=True))
    names = max(arranging.text_width(each.name, _SIZE) for each in tensors)
    axes = max(arranging.text_width(each.axes, 10) for each in tensors)
    return Drawing(_TENSOR + 8 + max(names, axes), top - _GAP, tuple(nodes))


def _rectangles(tensor: _Tensor, top: float, first: int) -> list[Node]:
    """Returns a tensor, whole and grey or as two halves in their colours."""
    width, height = _TENSOR, tensor.height
    if not tensor.cut:
        return [*cell((0, top, width, height), Line(_BOTH, size=_SIZE), fill=shapes.EMPTY)]
    nodes: list[Node] = []
    for device in (0, 1):
        place = (device * width / 2, top, width / 2, height)
        if tensor.cut == "rows":
            place = (0, top + device * height / 2, width, height / 2)
        nodes += cell(place, Line(str(device), size=_SIZE, bold=True), fill=first + device)
    return nodes


def partial_sums_picture() -> Figure:
    """Returns the product of hidden units and `down`: a partial sum on each device, and their sum on both."""
    nodes: list[Node] = []
    for device in (0, 1):
        top, fill = device * 92.0, 2 + device
        nodes.append(shapes.text(0, top + 38, _("device {number}", number=device), size=_SIZE, bold=True))
        places = {
            0: [(76 + half * 44.0, top + 12, 44.0, 44.0) for half in (0, 1)],
            1: [(196.0, top + half * 36.0, 60.0, 36.0) for half in (0, 1)],
        }
        for halves in places.values():
            for half, place in enumerate(halves):
                face = fill if half == device else shapes.PANEL
                nodes += cell(place, fill=face, dashes=None if half == device else "3 3")
        stripes = node(
            "g", shapes.stripes(60, 44, stroke=colour(fill)), transform=f"translate(288 {number(top + 12)})"
        )
        nodes += cell((288, top + 12, 60, 44), fill=shapes.PANEL, stripes=stripes)
        for x, sign in ((180, "×"), (272, "=")):
            nodes.append(shapes.text(x, top + 39, sign, size=14, anchor="middle", bold=True))
    nodes.append(shapes.text(318, 84, "+", size=16, anchor="middle", bold=True))
    for y, size, sign in ((76, _SIZE, _("all-reduce")), (92, 16, "→")):
        nodes.append(shapes.text(392, y, sign, size=size, anchor="middle", fill=shapes.ALARM, bold=True))
    nodes += cell((436, 62, 60, 44), Line(_BOTH, size=_SIZE), fill=shapes.EMPTY)
    for x, name in ((120, _("hidden units")), (226, "down"), (318, _("partial sums")), (466, _("result"))):
        nodes.append(shapes.text(x, 182, name, size=_SIZE, anchor="middle"))
    told = [
        _("device 0: left half of the hidden units × upper half of down = a partial sum"),
        _("device 1: right half of the hidden units × lower half of down = a partial sum"),
        _("all-reduce: the two are added up, and both devices get the result"),
    ]
    return framed(_("Two partial sums"), [Drawing(510, 190, tuple(nodes))], told)


def rule_picture() -> Figure:
    """Returns the three tensors of `bsd,df->bsf`; each letter is on the edge between those that have it."""
    places = {"x": (30.0, 14.0), "up": (330.0, 14.0), _("result"): (180.0, 150.0)}
    letters = {"x": "b s d", "up": "d f", _("result"): "b s f"}
    width, height = 120.0, 44.0
    middles = {name: (left + width / 2, top + height / 2) for name, (left, top) in places.items()}
    x, up, result = middles
    edges = [
        (x, up, "d", "", "middle", (240.0, 28.0)),
        (x, result, "b", "batch", "end", (136.0, 100.0)),
        (x, result, "s", "", "end", (156.0, 120.0)),
        (up, result, "f", "model", "start", (340.0, 110.0)),
    ]
    nodes: list[Node] = []
    told = []
    for first, second, letter, dim, anchor, (left, top) in edges:
        (x1, y1), (x2, y2) = middles[first], middles[second]
        nodes.append(node("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=shapes.SOFT_INK, stroke_width=1.5))
        content = _("{letter}, split over {dimension}", letter=letter, dimension=dim) if dim else letter
        ink = shapes.ALARM if dim else shapes.INK
        nodes.append(shapes.text(left, top, content, size=13, fill=ink, anchor=anchor, bold=True))
        told.append(_("between {first} and {second}: {letter}", first=first, second=second, letter=content))
    for name, place in places.items():
        lines = Line(name, -3, _SIZE, bold=True), Line(letters[name], 13, _SIZE, monospace=True)
        nodes += cell((*place, width, height), *lines, fill=shapes.PANEL)
    return framed(_("The letters of a product"), [Drawing(480, 200, tuple(nodes))], told)


def sent_picture(sent: Mapping[str, float]) -> Figure:
    """Returns how many bytes a GPU sends in a step, as a bar for each mesh dimension."""
    bars = []
    for dim, total in sent.items():
        bars.append(Bar(_("over {dimension}", dimension=dim), total, f"{total / 1e9:.0f} GB"))
    groups = [Bars(_("Each GPU sends in a step"), tuple(bars))]
    return framed(_("Bytes sent"), [bars_drawing(groups)], bar_lines(groups))


def run_picture(losses: Sequence[float], one_device: Sequence[float], plans: Mapping[int, str]) -> Picture:
    """Returns the loss of a run, a line where it changes its plan, and below it the loss of one device.

    Args:
        losses: of the run that changes its plan, step by step.
        one_device: of the same steps on one device.
        plans: after which step a plan begins, and what it is called.
    """
    sheet = Sheet(figsize=(8, 3.4), layout="constrained")
    plot = sheet.subplots()
    steps = range(1, len(losses) + 1)
    plot.plot(steps, one_device, linewidth=6, color="#BBBBBB", label=_("one device"))
    plot.plot(steps, losses, linewidth=1.6, color=STYLES[0][0], label=_("the run that changes its plan"))
    for step, plan in plans.items():
        plot.axvline(step, color=STYLES[1][0], linestyle="dashed", linewidth=1)
        plot.text(step + 0.6, 0.99, plan, transform=plot.get_xaxis_transform(), va="top")
    plot.set_xlim(0, len(losses))
    plot.set_ylim(0, 3.6)
    plot.set_xlabel(_("step"))
    plot.set_ylabel(_("loss"))
    plot.legend(loc="center right", frameon=False)
    text = _("Picture: the loss of a run that changes its plan, and that of one device.")
    changed = _("It changed after the steps {steps}.", steps=", ".join(str(step) for step in plans if step))
    return Picture.of(sheet, text, changed)
