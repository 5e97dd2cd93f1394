"""Pieces of which explorers make what they show below their controls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures import arranging
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.bars import Bars, bar_lines, bars_drawing
from course_lib.pictures.shapes import Node, node

_CODE = re.compile(r"`([^`]+)`")


def words(text: str) -> list[Node | str]:
    """Returns a text with what stands between backticks as code.

    >>> [piece if isinstance(piece, str) else piece[0] for piece in words("over `x`, not `y`")]
    ['over ', 'code', ', not ', 'code']
    """
    pieces = [node("code", piece) if at % 2 else piece for at, piece in enumerate(_CODE.split(text))]
    return [piece for piece in pieces if piece]


def refusal(error: CourseError) -> Node:
    """Returns why a choice is illegal."""
    return node(
        "div",
        node("strong", _("This choice is not possible.")),
        str(error),
        class_="refusal",
        role="alert",
    )


def facts(values: Mapping[str, object]) -> Node:
    """Returns a few quantities with their names."""
    rows = [
        node("div", node("dt", name), node("dd", str(value)), class_="fact") for name, value in values.items()
    ]
    return node("dl", *rows, class_="facts")


def panel(heading: str, content: Node, notes: Sequence[str | Node] = ()) -> Node:
    """Returns a picture under its heading, with lines of text below."""
    lines = [node("ul", *(node("li", note) for note in notes), class_="notes")] if notes else []
    return node("div", node("h3", heading), content, *lines, class_="panel")


def panels(content: Sequence[Node]) -> Node:
    """Returns panels side by side, as far as they fit."""
    return node("div", *content, class_="panels")


def image(drawing: Drawing, described: str) -> Node:
    """Returns a drawing that shrinks to fit, described to those who cannot see it."""
    shown = arranging.part_of_a_page(drawing, aria_hidden="true")
    return node("div", shown, class_="flow fits", role="img", aria_label=described)


def bars(groups: Sequence[Bars], full: float | None = None) -> Node:
    """Returns bars that shrink to fit; `full` is the value whose bar is longest, if not the greatest."""
    return image(bars_drawing(groups, full), "\n".join(bar_lines(groups)))


def images(drawings: Sequence[Drawing], described: str) -> Node:
    """Returns drawings that flow like words, as one image that the reader can move where it is too wide."""
    shown = [arranging.part_of_a_page(drawing, aria_hidden="true") for drawing in drawings]
    return node("div", *shown, class_="flow", role="img", aria_label=described, tabindex="0")


def usable(drawings: Sequence[Drawing], name: str) -> Node:
    """Returns drawings that flow like words and hold cards which the reader can press."""
    shown = [arranging.part_of_a_page(drawing) for drawing in drawings]
    return node("div", *shown, class_="flow", role="group", aria_label=name)


def moments(text: str, most: int) -> list[Node]:
    """Returns what lights the moments of an image one by one, from none up to so many, and says each.

    No state has it: the module hears it, and reads the line of a moment off the image's description.
    """
    line = node("input", type="range", class_="moment", min="0", max=str(most), value="0")
    return [node("label", node("span", text), line, class_="moments"), spoken("lit_line", "")]


def spoken(class_: str, text: str, **attributes: str) -> Node:
    """Returns a line that is read aloud when it changes."""
    return node("p", *words(text), class_=class_, role="status", **attributes)


def button(text: str, *, name: str = "", why_not: str = "", idle: bool = False) -> list[Node]:
    """Returns a button that the widget hears, by its name where it has several, and why it is disabled.

    Where it is `idle`, a press changes nothing; it stays where it is, so that it keeps the focus.
    """
    pressed = node(
        "button",
        text,
        type="button",
        class_="press",
        value=name or None,
        disabled="" if why_not else None,
        aria_disabled="true" if idle else None,
    )
    return [pressed, *([node("p", why_not, class_="why")] if why_not else [])]
