"""Controls: what a reader can choose, as data, and as pieces of a page.

A control stands for one place in the explorer's state, which it names by its path: `("mesh", 0, 1)` is
`state["mesh"][0][1]`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Literal, cast

from course_lib.pictures.shapes import Node, node
from course_lib.widgets.pieces import words

State = dict[str, Any]
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Choice:
    """One of several values, each with a text and one click away."""

    path: Path
    options: Sequence[tuple[Any, str]]


def numbers(path: Path, values: Iterable[int]) -> Choice:
    """Returns a choice among numbers."""
    return Choice(path, [(value, f"{value:,}") for value in values])


@dataclass(frozen=True)
class Switch:
    """What is on or off; one click changes it."""

    path: Path
    text: str
    is_on: bool


@dataclass(frozen=True)
class Slider:
    """One of several values that have an order, such as sizes; only the chosen one is named."""

    path: Path
    label: str
    options: Sequence[tuple[Any, str]]


@dataclass(frozen=True)
class Field:
    """A number or a line of text that the reader types.

    Numbers are whole where `step` is "1"; None is no end.
    """

    path: Path
    label: str
    kind: Literal["number", "text"] = "number"
    least: int | None = None
    most: int | None = None
    step: Literal["1", "any"] = "1"


@dataclass(frozen=True)
class Move:
    """A button that sets a value which the explorer takes as one move, such as a step forward.

    The settled state needs none at the path. Where the button is `idle` it changes nothing; it stays where
    it is, so that it keeps the focus.
    """

    path: Path
    value: Any
    text: str
    idle: bool = False


Control = Choice | Switch | Slider | Field | Move


@dataclass(frozen=True)
class Group:
    """Controls with one heading."""

    heading: str
    controls: Sequence[Control]


def with_value(state: State, path: Path, value: Any) -> State:
    """Returns a new state that differs at one place.

    >>> with_value({"mesh": [["x", 2]]}, ("mesh", 0, 1), 4)
    {'mesh': [['x', 4]]}
    """
    step, *rest = path
    changed: Any = copy.copy(state)  # what lies off the path is shared: nobody changes a state in place
    changed[step] = with_value(changed[step], tuple(rest), value) if rest else value
    return cast(State, changed)


def group_node(group: Group, state: State) -> Node:
    """Returns the controls of a group, as they stand now, as a piece of a page."""
    pieces = [piece for control in group.controls for piece in _pieces(control, state)]
    return node("fieldset", node("legend", *words(group.heading)), node("div", *pieces, class_="options"))


def leads_to(control: Control) -> list[Any]:
    """Returns the values that a reader can set with a control, in the order in which it shows them.

    >>> leads_to(Choice(("size",), [(2, "two"), (4, "four")])), leads_to(Move(("move",), 1, "Forward"))
    ([2, 4], [1])
    """
    if isinstance(control, Choice | Slider):
        return [value for value, _text in control.options]
    if isinstance(control, Switch):
        return [not control.is_on]
    return [control.value] if isinstance(control, Move) else []


def _pieces(control: Control, state: State) -> list[Node]:
    if isinstance(control, Move):
        idle = "true" if control.idle else None
        return [_input(control, "button", json.dumps(control.value), value=control.text, aria_disabled=idle)]
    if isinstance(control, Switch):
        checked = "" if control.is_on else None
        box = _input(control, "checkbox", json.dumps(not control.is_on), checked=checked)
        return [node("label", box, node("span", *words(control.text)), class_="choice")]
    chosen: Any = reduce(getitem, control.path, cast(Any, state))
    if isinstance(control, Field):
        is_text, value = control.kind == "text", "" if chosen is None else str(chosen)
        limits: dict[str, Any] = {"min": control.least, "max": control.most, "step": control.step}
        field = _input(control, control.kind, **({} if is_text else limits), value=value)
        return [node("label", node("span", control.label), field, class_="line" if is_text else "number")]
    if isinstance(control, Slider):
        return [_slider(control, leads_to(control).index(chosen))]
    name = "-".join(map(str, control.path))
    radios = (
        _input(control, "radio", json.dumps(value), name=name, checked="" if value == chosen else None)
        for value, _text in control.options
    )
    return [
        node("label", radio, node("span", *words(text)), class_="choice")
        for radio, (_value, text) in zip(radios, control.options, strict=True)
    ]


def _slider(control: Slider, at: int) -> Node:
    """Returns a slider that stands at one of its places, and the text of that place."""
    text, last = control.options[at][1], str(len(control.options) - 1)
    told = {"aria_label": control.label, "aria_valuetext": text}
    values = json.dumps(leads_to(control))
    place = _input(control, "range", values, min="0", max=last, step="1", value=str(at), **told)
    return node("div", place, node("span", text, aria_hidden="true"), class_="slider")


def _input(control: Control, kind: str, value_set: str | None = None, **attributes: Any) -> Node:
    """Returns what the reader sets a place of the state with; a click on it may set a value of its own."""
    path = json.dumps(control.path)
    return node("input", type=kind, **attributes, data_path=path, data_value=value_set)
