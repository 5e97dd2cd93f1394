"""A widget to be read: where nothing can be chosen, and in words, for a terminal and a screen reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node, node

_NEEDS_A_SCRIPT = ("button", "details")
_JOINTS = {"fact": ": ", "h3": "", "li": "", "p": "", "pre": ""}  # between the parts of a line
_PANEL = f"background:{shapes.PANEL};color:{shapes.INK};padding:.8em 1em;border-radius:10px"


def still(title: str, body: Sequence[Node]) -> Node:
    """Returns a title and a body without what only a script brings to life."""
    heading = node("p", node("strong", title))
    return node("div", heading, *_without_scripts(body), style=_PANEL)


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
    joint = _JOINTS.get(attributes.get("class", tag), _JOINTS.get(tag))
    if joint is None or not said:
        return said
    return [("- " if tag == "li" else "") + joint.join(said)]


def _without_scripts(children: Sequence[Node | str]) -> Iterator[Node | str]:
    for child in children:
        if isinstance(child, str):
            yield child
        elif child[0] not in _NEEDS_A_SCRIPT and child[1].get("class") != "why":
            tag, attributes, *inside = child
            kept = {name: value for name, value in attributes.items() if name != "tabindex"}
            role = {"role": "img"} if kept.get("role") == "button" else {}
            yield [tag, {**kept, **role}, *_without_scripts(inside)]
