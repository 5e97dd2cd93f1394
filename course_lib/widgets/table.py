"""The table of a widget's views, for a page without a kernel: what comes twice stands there once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

from course_lib.pictures.shapes import Node
from course_lib.widgets.base import TreeWidget, key
from course_lib.widgets.controls import State

_LEAST_CHARACTERS = 12  # a shorter part costs as much as the number that would stand for it


def page_table(widget: TreeWidget, first: State | None = None) -> dict[str, Any]:
    """Returns every view that choices on a page lead to, in the reader's language, as plain JSON values.

    Args:
        widget: an explorer or a card.
        first: the state whose view comes first; by default the widget's own.

    Returns:
        `keys`, `views` and `leads_to`, with one entry a state: its key, its view, and the places of the
        states that its options lead to; and `parts`, what views and other parts share. Where a view holds a
        number, the part of that number belongs.

    Raises:
        ValueError: two states have one key.
    """
    states, after = _reachable(widget, first or widget.state)
    places = {name: place for place, name in enumerate(states)}
    views, parts = _shared(widget.tree(state, page=True) for state in states.values())
    leads_to = [[places[name] for name in after[state]] for state in states]
    return {"keys": list(states), "views": views, "leads_to": leads_to, "parts": parts}


def _reachable(widget: TreeWidget, first: State) -> tuple[dict[str, State], dict[str, list[str]]]:
    """Returns each state that choices on a page lead to, under its key, and the keys that follow on it."""
    states: dict[str, State] = {}
    after: dict[str, list[str]] = {}
    waiting = [widget.settled(first, page=True)]
    while waiting:
        state = waiting.pop()
        name = key(state)
        if name not in states:
            states[name] = state
            following = widget.next_states(state)
            after[name] = [key(each) for each in following]
            waiting += following
        elif states[name] != state:
            raise ValueError(f"two states have one key: {state} and {states[name]}")
    return states, after


class _Parts:
    """The different parts of some trees: attributes, and nodes made of texts and of the numbers of parts."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.contents: list[dict[str, str] | list[str | int]] = []
        self.times: list[int] = []
        self.num_characters: list[int] = []

    def add(self, tree: Node | str) -> str | int:
        """Counts a tree and all that is in it; returns its number, or the text that it is."""
        if isinstance(tree, str):
            return tree
        content = (tree.tag, self._add_attributes(tree.attributes), *map(self.add, tree.children))
        number = self._numbers.get(content)
        if number is None:
            return self._new(content, list(content), sum(map(self._length, content)) + len(content) + 1)
        self.times[number] += 1
        return number

    def _add_attributes(self, attributes: tuple[tuple[str, str], ...]) -> int:
        number = self._numbers.get(attributes)
        if number is None:
            return self._new(attributes, dict(attributes), len(json.dumps(dict(attributes))) + 2)
        self.times[number] += 1
        return number

    def _new(self, name: Hashable, content: dict[str, str] | list[str | int], num_characters: int) -> int:
        number = self._numbers[name] = len(self.contents)
        self.contents.append(content)
        self.times.append(1)
        self.num_characters.append(num_characters)
        return number

    def _length(self, value: str | int) -> int:
        return len(json.dumps(value)) if isinstance(value, str) else self.num_characters[value]


def _shared(trees: Iterable[Node]) -> tuple[list[Any], list[Any]]:
    """Returns the trees as JSON, with a number in place of each part that comes twice, and these parts."""
    parts = _Parts()
    views = [parts.add(tree) for tree in trees]
    often = [
        number
        for number, times in enumerate(parts.times)
        if times > 1 and parts.num_characters[number] > _LEAST_CHARACTERS
    ]
    often.sort(key=parts.times.__getitem__, reverse=True)  # the most frequent have the shortest numbers
    places = {number: place for place, number in enumerate(often)}

    def shared(value: str | int) -> Any:
        if isinstance(value, str):
            return value
        return places[value] if value in places else opened(value)

    def opened(number: int) -> Any:
        content = parts.contents[number]
        return content if isinstance(content, dict) else [shared(value) for value in content]

    return [shared(view) for view in views], [opened(number) for number in often]
