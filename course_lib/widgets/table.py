"""The table of a widget's views, for a page without a kernel: what comes twice stands there once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from course_lib.pictures import shapes
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
    views, parts = _shared([shapes.to_json(widget.tree(state, page=True)) for state in states.values()])
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


def _shared(views: list[Any]) -> tuple[list[Any], list[Any]]:
    """Returns the views with a number in place of each part that comes twice, and these parts."""
    texts: dict[int, str] = {}
    counts: Counter[str] = Counter()
    originals: dict[str, Any] = {}

    def count(value: Any) -> str:
        """Counts a part and all parts in it; returns its text."""
        if isinstance(value, str):
            return json.dumps(value)
        inside = map(count, value) if isinstance(value, list) else [json.dumps(value)]
        texts[id(value)] = text = "[" + ",".join(inside) + "]"
        counts[text] += 1
        originals.setdefault(text, value)
        return text

    for view in views:
        count(view)
    often = [text for text, times in counts.most_common() if times > 1 and len(text) > _LEAST_CHARACTERS]
    numbers = {text: number for number, text in enumerate(often)}

    def shared(value: Any) -> Any:
        number = None if isinstance(value, str) else numbers.get(texts[id(value)])
        return opened(value) if number is None else number

    def opened(value: Any) -> Any:
        return [shared(child) for child in value] if isinstance(value, list) else value

    return [shared(view) for view in views], [opened(originals[text]) for text in often]
