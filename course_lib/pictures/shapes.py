"""The tree of shapes: what Python computes once and SVG files, pages and notebooks then show.

It is in the words of SVG and HTML. Roles such as `data-device` say what a shape stands for, so that a page
can listen to it without knowing how it was made.
"""

from __future__ import annotations

from html import escape
from typing import Any

# The colours of Okabe and Ito, lightened until dark text reads well on each and moved apart until every
# two stay apart for readers with protan, deutan or tritan vision (tests/unit/test_svg.py computes it).
PALETTE = ("#91C9F6", "#E29B2F", "#38AE86", "#F2E36B", "#CD88B7", "#E6744D", "#9993EA", "#D3D7DD")
INK, SOFT_INK, LINE, EMPTY, PANEL, ALARM = "#1B1F24", "#4D5661", "#AEB6C0", "#EEF0F3", "#FCFCFA", "#B3261E"

_STRIPE_STEP, _STRIPE_WIDTH = 7, 3.0

SANS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Hiragino Sans', 'Noto Sans CJK JP', "
    "'Yu Gothic', Meiryo, sans-serif"
)
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


# A shape, or several in a group, or a piece of a page, as plain JSON: the name of its element, a dictionary
# of attributes in the order in which they are written, and then its children, nodes and texts.
Node = list[Any]


def node(tag: str, *children: Node | str, **attributes: str | float | None) -> Node:
    """Returns a node; `_` in the name of an attribute stands for `-`, and None leaves the attribute out.

    >>> node("text", "A", x=1.5, font_size=12, class_="label")
    ['text', {'x': '1.5', 'font-size': '12', 'class': 'label'}, 'A']
    """
    named = {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else f"{round(value, 2):g}"
        for name, value in attributes.items()
        if value is not None
    }
    return [tag, named, *children]


def markup(tree: Node | str) -> str:
    """Returns the tree as a file or a page has it, SVG or HTML.

    >>> markup(node("g", node("rect", width=2), node("text", "a < b")))
    '<g><rect width="2"></rect><text>a &lt; b</text></g>'
    """
    if isinstance(tree, str):
        return escape(tree, quote=False)
    tag, attributes, *children = tree
    named = "".join([f' {name}="{escape(value)}"' for name, value in attributes.items()])
    return f"<{tag}{named}>{''.join(map(markup, children))}</{tag}>"


def number(value: float) -> str:
    """Returns `value` in as few characters as a picture needs.

    >>> number(2.0), number(1 / 3), number(40)
    ('2', '0.33', '40')
    """
    return f"{round(value, 2):g}"


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    stroke: str = LINE,
    stroke_width: float = 1,
    radius: float = 0,
    dashes: str | None = None,
    class_: str | None = None,
) -> Node:
    """Returns a rectangle."""
    return node(
        "rect",
        x=x,
        y=y,
        width=width,
        height=height,
        rx=radius or None,
        fill=fill,
        stroke=stroke if stroke_width else None,
        stroke_width=stroke_width or None,
        stroke_dasharray=dashes,
        class_=class_,
    )


def tab(x: float, y: float, width: float, height: float, *, fill: str, radius: float) -> Node:
    """Returns a rectangle whose upper corners are round."""
    across, arc = number(width - 2 * radius), number(radius)
    outline = f"M{number(x)} {number(y + height)}v-{number(height - radius)}a{arc} {arc} 0 0 1 {arc} -{arc}"
    outline += f"h{across}a{arc} {arc} 0 0 1 {arc} {arc}v{number(height - radius)}z"
    return node("path", d=outline, fill=fill)


def stripes(width: float, height: float, *, stroke: str) -> Node:
    """Returns slanted lines that fill the rectangle from (0, 0) to (`width`, `height`).

    They are lines and no pattern of SVG: a pattern is found by its id, of which a page may have several.
    """
    lines = []
    for start in range(-int(height), int(width), _STRIPE_STEP):
        left, right = max(start, 0.0), min(start + height, width)
        ends = height - (left - start), height - (right - start)
        lines.append(f"M{number(left)} {number(ends[0])}L{number(right)} {number(ends[1])}")
    return node("path", class_="stripes", d="".join(lines), stroke=stroke, stroke_width=_STRIPE_WIDTH)


def text(
    x: float,
    y: float,
    content: str,
    *,
    down: float = 0,
    size: float = 12,
    anchor: str = "start",
    fill: str = INK,
    bold: bool = False,
    monospace: bool = False,
    halo: bool = False,
) -> Node:
    """Returns a line of text, its baseline so far `down` below `y`; a halo keeps stripes off its letters."""
    return node(
        "text",
        content,
        x=x,
        y=y + down,
        font_size=size,
        text_anchor=anchor,
        fill=fill,
        font_weight="600" if bold else None,
        font_family=MONOSPACE if monospace else None,
        stroke=PANEL if halo else None,
        stroke_width=3 if halo else None,
        paint_order="stroke" if halo else None,
    )
