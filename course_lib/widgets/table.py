"""The table of a widget's views, for a page without a kernel: what comes twice stands there once."""

from __future__ import annotations

import json
from typing import Any

from course_lib.pictures.shapes import Node
from course_lib.widgets.base import TreeWidget, key
from course_lib.widgets.controls import State


def page_table(widget: TreeWidget) -> dict[str, Any]:
    """Returns every view that choices on a page lead to, in the reader's language, as plain JSON values.

    Returns:
        `keys`, `views` and `leads_to`, with one entry a state: its key, the number of its view, and the
        places of the states that its options lead to; and `parts`, to which numbers refer: nodes, which have
        numbers in place of their attributes and of children that are no texts, and these attributes.
    """
    states, leads_to = _reachable(widget)
    parts = _Parts()
    views = [parts.number(widget.page_tree(state)) for state in states.values()]
    return {"keys": list(states), "views": views, "leads_to": leads_to, "parts": parts.contents}


class _Parts:
    """The different nodes of some views, and the attributes of nodes, each with a number."""

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, tree: Node | str) -> int | str:
        """Returns the number of a node; a text is left as it is."""
        if isinstance(tree, str):
            return tree
        tag, attributes, *children = tree
        return self._add([tag, self._add(attributes), *map(self.number, children)])

    def _add(self, content: Any) -> int:
        number = self._numbers.setdefault(json.dumps(content), len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number


def _reachable(widget: TreeWidget) -> tuple[dict[str, State], list[list[int]]]:
    """Returns each state that choices lead to, under its key, and the places of those that follow on it."""
    first = widget.page_first()
    states = {key(first): first}
    following: dict[str, list[str]] = {}
    while waiting := [name for name in states if name not in following]:
        for name in waiting:
            after = widget.next_states(states[name])
            following[name] = [key(state) for state in after]
            states |= dict(zip(following[name], after, strict=True))
    places = {name: place for place, name in enumerate(states)}
    return states, [[places[name] for name in following[state]] for state in states]
