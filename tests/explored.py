"""What tests do with explorers and their views: choose, press, and read what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from course_lib.specs.communication import product
from course_lib.specs.explanation import Explanation
from course_lib.widgets import reading


def choose(explorer, *path_and_value: Any) -> None:
    """Does what the module sends when the reader sets a control: the last argument is the value."""
    *path, value = path_and_value
    explorer._handle_custom_msg({"kind": "change", "path": path, "value": value}, [])


def press(explorer, name: str = "") -> None:
    """Does what the module sends when the reader presses the button, or the one of a name."""
    explorer._handle_custom_msg({"kind": "press", "name": name}, [])


def nodes(view) -> Iterator[list[Any]]:
    """Yields all nodes of a view, from the top down."""
    if isinstance(view, list):
        yield view
        for child in view[2:]:
            yield from nodes(child)


def pieces(view, class_: str) -> Iterator[list[Any]]:
    """Yields the nodes of a class in a view."""
    return (each for each in nodes(view) if class_ in each[1].get("class", "").split())


def inputs(view) -> list[dict[str, str]]:
    """Returns the attributes of what the reader can set, in the order in which the module counts it."""
    return [each[1] for each in nodes(view) if each[0] == "input" and "data-path" in each[1]]


def options(view) -> list[tuple[list[Any], Any, bool]]:
    """Returns what the reader can set where to what, in that order, and whether it changes anything."""
    found = []
    for each in inputs(view):
        path, value = (json.loads(each[name]) for name in ("data-path", "data-value"))
        if each["type"] == "range":
            found += [(path, one, str(at) != each["value"]) for at, one in enumerate(value)]
        else:
            is_chosen = each["type"] == "radio" and "checked" in each
            found.append((path, value, not is_chosen and each.get("aria-disabled") != "true"))
    return found


def text_of(view, between: str = "") -> str:
    return view if isinstance(view, str) else between.join(text_of(child, between) for child in view[2:])


def shown(explorer, class_: str) -> list[str]:
    """Returns the texts of the pieces of a class in what the explorer shows."""
    return [text_of(piece) for piece in pieces(explorer.view, class_)]


def told(explorer) -> str:
    """Returns in words what the explorer shows below its controls, but for programs that are folded."""
    _tag, _attributes, _controls, *body, _late = explorer.view
    return "\n".join(line for piece in body if piece[0] != "details" for line in reading.lines(piece))


def whole(table, number):
    """Puts the parts of a table back where numbers stand for them."""
    if isinstance(number, str):
        return number
    tag, attributes, *children = table["parts"][number]
    named, *values = table["parts"][attributes]
    read = dict(zip(table["names"][named], values, strict=True))
    return [tag, read, *(whole(table, child) for child in children)]


def ran_as_predicted(left, right, wanted) -> Explanation:
    """Stands in for real devices that multiply matrices: runs what is predicted, as CPUs do."""
    predicted = product(left, right, wanted)
    seen = tuple(each.as_run() for each in predicted.collectives)
    return Explanation(predicted, seen, predicted.result.layout)
