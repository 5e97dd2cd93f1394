"""Drawings: small pieces of SVG with a size, put side by side and on one light panel."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# The colours of Okabe and Ito, lightened until dark text reads well on each and moved apart until every
# two stay apart for readers with protan, deutan or tritan vision (tests/unit/test_svg.py computes it).
PALETTE = ("#91C9F6", "#E29B2F", "#38AE86", "#F2E36B", "#CD88B7", "#E6744D", "#9993EA", "#D3D7DD")
INK, SOFT_INK, LINE, EMPTY, PANEL, ALARM = "#1B1F24", "#4D5661", "#AEB6C0", "#EEF0F3", "#FCFCFA", "#B3261E"

SANS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Hiragino Sans', 'Noto Sans CJK JP', "
    "'Yu Gothic', Meiryo, sans-serif"
)
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_PADDING = 16.0


@dataclass(frozen=True)
class Drawing:
    """A piece of SVG that fills the rectangle from (0, 0) to (`width`, `height`)."""

    width: float
    height: float
    body: str

    def at(self, x: float, y: float) -> str:
        """Returns the drawing moved to (`x`, `y`)."""
        return f'<g transform="translate({number(x)} {number(y)})">{self.body}</g>'


def number(value: float) -> str:
    """Returns `value` in as few characters as a picture needs.

    >>> number(2.0), number(1 / 3)
    ('2', '0.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
    dashes: str = "",
) -> str:
    """Returns a rectangle."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    corners = f' rx="{number(radius)}"' if radius else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = f' stroke="{stroke}" stroke-width="{number(stroke_width)}"' if stroke_width else ""
    return f'<rect {place}{corners} fill="{fill}"{line}{dashed}/>'


def tab(x: float, y: float, width: float, height: float, *, fill: str, radius: float) -> str:
    """Returns a rectangle whose upper corners are round."""
    across, arc = number(width - 2 * radius), number(radius)
    outline = f"M{number(x)} {number(y + height)}v-{number(height - radius)}a{arc} {arc} 0 0 1 {arc} -{arc}"
    outline += f"h{across}a{arc} {arc} 0 0 1 {arc} {arc}v{number(height - radius)}z"
    return f'<path d="{outline}" fill="{fill}"/>'


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = LINE, width: float = 0.5) -> str:
    """Returns a straight line."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="{number(width)}"/>'


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = 12,
    anchor: str = "start",
    fill: str = INK,
    bold: bool = False,
    monospace: bool = False,
) -> str:
    """Returns a line of text whose baseline is at `y`."""
    weight = ' font-weight="600"' if bold else ""
    family = f' font-family="{MONOSPACE}"' if monospace else ""
    at = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}" text-anchor="{anchor}"'
    return f'<text {at} fill="{fill}"{weight}{family}>{escape(content)}</text>'


def text_width(content: str, size: float) -> float:
    """Returns about how wide a line of text becomes, East Asian characters counted as full squares."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in content)
    return size * (wide + 0.58 * (len(content) - wide))


def lines_of_text(lines: Sequence[str], *, size: float, max_width: float, fill: str = INK) -> Drawing:
    """Returns lines of text under each other, broken where they would become wider than `max_width`."""
    broken = [part for content in lines for part in _broken(content, size, max_width)]
    body = "".join(
        text(0, size * (1.45 * row + 1), part, size=size, fill=fill) for row, part in enumerate(broken)
    )
    width = max((text_width(part, size) for part in broken), default=0.0)
    return Drawing(width, size * 1.45 * len(broken), body)


def titled(title: str, drawing: Drawing) -> Drawing:
    """Returns the drawing under a heading."""
    size, gap = 12.0, 10.0
    heading = text(0, size, title, size=size, fill=SOFT_INK, bold=True)
    width = max(drawing.width, text_width(title, size))
    return Drawing(width, size + gap + drawing.height, heading + drawing.at(0, size + gap))


def stacked(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Returns the drawings under each other."""
    body, y = "", 0.0
    for drawing in drawings:
        body += drawing.at(0, y)
        y += drawing.height + gap
    return Drawing(max(drawing.width for drawing in drawings), y - gap, body)


def beside(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Returns the drawings next to each other, their upper edges in line."""
    body, x = "", 0.0
    for drawing in drawings:
        body += drawing.at(x, 0)
        x += drawing.width + gap
    return Drawing(x - gap, max(drawing.height for drawing in drawings), body)


def flowing(drawings: Sequence[Drawing], gap: float, max_width: float) -> Drawing:
    """Returns the drawings in rows like words in a paragraph: a new row where `max_width` is reached."""
    rows: list[list[Drawing]] = [[]]
    for drawing in drawings:
        width = sum(placed.width + gap for placed in rows[-1]) + drawing.width
        if rows[-1] and width > max_width:
            rows.append([])
        rows[-1].append(drawing)
    return stacked([beside(row, gap) for row in rows], gap)


def document(drawing: Drawing, title: str) -> str:
    """Returns a whole SVG image: the drawing on a light panel that reads well on dark pages too."""
    width, height = drawing.width + 2 * _PADDING, drawing.height + 2 * _PADDING
    panel = rectangle(0.5, 0.5, width - 1, height - 1, fill=PANEL, stroke="#DDE1E6", radius=10)
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} style="max-width:100%;height:auto" '
        f'font-family="{SANS}"><title>{escape(title)}</title>{panel}'
        f"{drawing.at(_PADDING, _PADDING)}</svg>"
    )


def _broken(content: str, size: float, max_width: float) -> list[str]:
    lines = [""]
    for piece in _pieces(content):
        if lines[-1].strip() and text_width((lines[-1] + piece).rstrip(), size) > max_width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return lines


def _pieces(content: str) -> list[str]:
    """Splits after spaces and after every East Asian character: a line may break there."""
    pieces = [""]
    for character in content:
        pieces[-1] += character
        if character == " " or unicodedata.east_asian_width(character) in "WF":
            pieces.append("")
    return [piece for piece in pieces if piece]
