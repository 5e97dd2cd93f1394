"""A widget to be read: where nothing can be chosen, and in words, for a terminal and a screen reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_lib.i18n import labelled
from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node, node

_NEEDS_A_SCRIPT = ("button", "details")
_LINES = ("h3", "li", "p", "pre")
_PANEL = f"background:{shapes.PANEL};color:{shapes.INK};padding:.8em 1em;border-radius:10px"


def still(title: str, body: Sequence[Node]) -> Node:
    """Returns a title and a body without what only a script brings to life."""
    heading = node("p", node("strong", title))
    return node("div", heading, *_stilled(body), style=_PANEL)


def lines(tree: Node | str) -> list[str]:
    """Returns what a piece of a page says, line by line; of an image or a card its description.

    >>> lines(node("div", node("p", "over ", node("code", "x")), node("svg", role="img", aria_label="A")))
    ['over x', 'A']
    """
    if isinstance(tree, str):
        return [tree]
    tag, attributes, *children = tree
    if tag == "text":  # of an image, which has a description
        return []
    if attributes.get("role") in ("button", "img"):
        return str(attributes["aria-label"]).split("\n")
    said = [line for child in children for line in lines(child)]
    if attributes.get("class") == "fact":
        name, value = said
        return [labelled(name, value)]
    if tag not in _LINES or not said:
        return said
    return [("- " if tag == "li" else "") + "".join(said)]


def _stilled(children: Sequence[Node | str]) -> Iterator[Node | str]:
    """Yields pieces of a page as they look without a script, and without the module's styles."""
    for child in children:
        if isinstance(child, str):
            yield child
            continue
        tag, attributes, *inside = child
        kind = attributes.get("class")
        if kind == "fact":
            yield node("p", *lines(child))
        elif tag == "h3":  # JupyterLab would list it among the headings of the lesson
            yield node("p", node("strong", *inside))
        elif tag not in _NEEDS_A_SCRIPT and kind != "why":
            kept = {name: value for name, value in attributes.items() if name != "tabindex"}
            role = {"role": "img"} if kept.get("role") == "button" else {}
            yield ["div" if tag == "dl" else tag, {**kept, **role}, *_stilled(inside)]
