"""Bars of plans: what each technique saves, and what a device holds against the line where it is full."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from course_lib.i18n import _, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import cell
from course_lib.pictures.figures import Figure, framed
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import marked

MEMORY = ("variables", "gradients", "optimizer", "activations")
KINDS = ("computing", "model", "batch", "stage", *MEMORY)
COLOURS = {**dict(zip(KINDS, reversed(shapes.PALETTE), strict=True)), "bubble": shapes.EMPTY}
WIDTH, HEIGHT, SIZE = 280, 14, 12.0
_LINE = 18.0


def words() -> dict[str, str]:
    """Returns what the parts of a step's time and of a device's memory are called."""
    over = [_("over {dimension}", dimension=name) for name in ("model", "batch")]
    names = (_("variables"), _("gradients"), _("optimizer"), _("activations"))
    return {
        **dict(zip(KINDS, (_("computing"), *over, _("between stages"), *names), strict=True)),
        "bubble": _("waiting"),
    }


def _techniques() -> dict[str, str]:
    """Returns what the techniques are called that lessons name."""
    return {
        "data and tensor": _("data and tensor"),
        "stages": _("stages"),
        "chunks": _("chunks"),
        "recomputation": _("recomputation"),
        "overlap": _("overlap"),
    }


def parts_bar(parts: Mapping[str, float], full: float, limit: float = 0.0) -> Drawing:
    """Returns a bar of coloured parts, and a line where a limit lies.

    Each part reaches from the left end to its own, below the parts before it, in whole pixels: so a page's
    table has few different ones.

    Args:
        parts: the size of each, by its kind.
        full: the size that fills the width.
        limit: where the line stands, if anywhere.
    """
    ends, so_far = {}, 0.0
    for kind, size in parts.items():
        so_far += size
        ends[kind] = round(WIDTH * so_far / full)
    nodes: list[Node] = [
        node("rect", width=end, height=HEIGHT, fill=COLOURS[kind])
        for kind, end in reversed(ends.items())
        if end
    ]
    if limit:
        nodes.append(node("rect", x=round(WIDTH * limit / full) - 1, y=-2, width=2, height=HEIGHT + 4))
    return Drawing(WIDTH, HEIGHT, (node("g", *nodes, stroke=shapes.INK, stroke_width=0.75),))


def colour_key(kinds: Sequence[str], width: float) -> Drawing:
    """Returns what the colours of these kinds stand for."""
    told = words()
    entries = [
        Drawing(
            24 + text_width(told[kind], SIZE),
            HEIGHT,
            (*cell((0, 0, 16, HEIGHT), fill=COLOURS[kind]), shapes.text(22, 12, told[kind], size=SIZE)),
        )
        for kind in kinds
    ]
    return arranging.flowing(entries, 8, width)


def plans_against_memory(rows: Sequence[tuple[str, Mapping[str, float]]], limit_bytes: float) -> Figure:
    """Returns what a device holds under each plan, as bars of parts, with a line where it is full.

    Args:
        rows: a plan's name, and the bytes of each kind of tensors, such as variables.
        limit_bytes: of a device.
    """
    sums = {label: sum(parts.values()) for label, parts in rows}
    full = max(limit_bytes, *sums.values())
    drawings, lines = [], []
    for label, parts in rows:
        total = marked(size_text(sums[label]), agrees=sums[label] <= limit_bytes)
        drawings.append(_row(label, parts_bar(parts, full, limit_bytes), WIDTH, total))
        sizes = [f"{words()[kind]} {size_text(size)}" for kind, size in parts.items()]
        lines.append(labelled(label, labelled(total, _(", ").join(sizes))))
    kinds = [kind for kind in MEMORY if any(kind in parts for _label, parts in rows)]
    says = _("The line marks the {limit} of a device.", limit=f"{limit_bytes / 1e9:g} GB")
    told = arranging.lines_of_text([says], size=SIZE, max_width=WIDTH + 90, fill=shapes.SOFT_INK)
    title = _("What a device holds")
    head = arranging.lines_of_text([title], size=14, max_width=WIDTH + 90)
    return framed(title, [head, *drawings, colour_key(kinds, WIDTH + 90), told], [says, *lines])


def ladder(rows: Sequence[tuple[str, float]], unit: str = "s") -> Figure:
    """Returns falling bars: what is left after each technique, and dashed what it saves.

    Args:
        rows: a technique, by its English name, and the number with it and with all those above.
        unit: of the numbers.
    """
    full = max(number for _label, number in rows)
    drawings, lines, before = [], [], rows[0][1]
    for name, left in rows:
        label = _techniques().get(name, name)
        figure = f"{three_digits(left)} {unit}"
        if left != before:
            change = f"{three_digits(abs(left - before))}"
            figure += f" ({'−' if left < before else '+'}{change})"
        drawings.append(_row(label, _step(left, before, full), WIDTH * max(left, before) / full, figure))
        lines.append(labelled(label, figure))
        before = left
    title = _("What each technique saves")
    head = arranging.lines_of_text([title], size=14, max_width=WIDTH + 90)
    return framed(title, [head, *drawings], lines)


def _step(left: float, before: float, full: float) -> Drawing:
    """Returns what is left of what there was before."""
    end, saved = WIDTH * left / full, WIDTH * (before - left) / full
    nodes = cell((0, 0, end, HEIGHT), fill=0)
    if saved > 0:
        nodes += (shapes.rectangle(end, 0.5, saved, HEIGHT - 1, fill="none", dashes="3 2"),)
    return Drawing(WIDTH, HEIGHT, nodes)


def _row(label: str, bar: Drawing, end: float, figure: str) -> Drawing:
    """Returns a bar under its label, with its figure behind it."""
    nodes = (
        shapes.text(0, SIZE, label, size=SIZE),
        bar.at(0, _LINE),
        shapes.text(end + 8, _LINE + SIZE, figure, size=SIZE),
    )
    width = max(text_width(label, SIZE), end + 8 + text_width(figure, SIZE))
    return Drawing(width, _LINE + HEIGHT, nodes)


def time_text(seconds: float) -> str:
    """Returns a time in seconds, or in milliseconds where it is shorter than one.

    >>> time_text(20.64), time_text(0.0144)
    ('20.6 s', '14.4 ms')
    """
    return f"{three_digits(seconds)} s" if seconds >= 1 else f"{three_digits(1e3 * seconds)} ms"


def size_text(num_bytes: float) -> str:
    """Returns a size in GB.

    >>> size_text(80e9)
    '80.0 GB'
    """
    return f"{three_digits(num_bytes / 1e9)} GB"


def three_digits(value: float) -> str:
    """Returns three digits that count, at most two of them after the point.

    >>> three_digits(13.9437), three_digits(4289.97), three_digits(0.00421)
    ('13.9', '4,290', '0.00')
    """
    return f"{value:,.{min(max(2 - math.floor(math.log10(value)), 0), 2)}f}" if value else "0"
