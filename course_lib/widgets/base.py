"""The base of every widget: it lives in a notebook, and as an element on a page without a kernel.

A widget is its controls and one function from what the reader chose to what is shown. Both hosts show the
same tree of nodes, which the one ES module `static/widget.js` paints: in a notebook each choice goes to
Python and comes back as a new tree; on a page the module takes the tree out of a table that the book made.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from course_lib.i18n import _, language
from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import controls, reading
from course_lib.widgets.controls import Group, State

MODULE = Path(__file__).parent / "static" / "widget.js"


class TreeWidget(anywidget.AnyWidget):
    """Shows what follows from a few choices; `state` and `view` follow what the reader does.

    A subclass gives `name`, `title`, `controls` and `body`, and `settled` where not every choice goes with
    every other; methods named `page_...` where a page without a kernel offers less than a notebook. What
    they return follows from the given state, so that the book can ask for every answer beforehand.

    Args:
        state: what is chosen first, as plain JSON values.

    Attributes:
        kind: "explorer" for the element `<course-explorer>` of a page, and the class of what it shows.
        carries_table: whether its element holds its table of views, since the book has no file of it.
        name: of its table of views in the book.
        title: what it is called in the reader's language, such as `later("Ring stepper")`.
    """

    _esm = MODULE
    _ipython_display_ = None  # ipywidgets 7 would show itself with it, and leave the bundle below out

    kind: ClassVar[str]
    carries_table: ClassVar[bool] = False
    name: Any
    title: Any

    state = traitlets.Dict().tag(sync=True)
    view: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, state: State) -> None:
        super().__init__(state=state)
        self.show()
        self.observe(self.show, "state")
        self._loop: asyncio.AbstractEventLoop | None = None  # outside a kernel, whose loop runs this
        with contextlib.suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        self.on_msg(self._hear)

    @abstractmethod
    def controls(self, state: State) -> Sequence[Group]:
        """Returns what the reader can choose now."""

    def settled(self, state: State) -> State:
        """Returns the state made whole after a choice."""
        return state

    @abstractmethod
    def body(self, state: State) -> Sequence[Node]:
        """Returns what is shown below the controls."""

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns what a page offers: nothing to type, and few states."""
        return self.controls(state)

    def page_settled(self, state: State) -> State:
        """Returns the state that the table of a page has and that is most like this one."""
        return self.settled(state)

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns what a page shows below the controls."""
        return self.body(state)

    def page_first(self) -> State:
        """Returns the state that a page shows first."""
        return self.page_settled(self.state)

    def page_part(self, state: State) -> str:  # noqa: ARG002 - most have one table
        """Returns the end of the name of the table that has a state; a page loads each when needed."""
        return ""

    def page_tables(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the tables of all views that choices on a page lead to, with their files.

        They are in the reader's language, and plain JSON values: `keys`, `views` and `leads_to`, with one
        entry a state, have its key, the number of its view, and the places of the states that its options
        lead to, or a place among `files` and a place in that one; `parts`, to which numbers refer, has
        nodes, which have numbers in place of their attributes and of children that are no texts, and these
        attributes: their values, behind the place of their names in `names`.
        """
        states, following = self._reachable()
        tables: dict[str, list[str]] = {}
        for name, state in states.items():
            tables.setdefault(table_file(self.name, language(), self.page_part(state)), []).append(name)
        homes = {
            name: [table, place]
            for table, names in enumerate(tables.values())
            for place, name in enumerate(names)
        }
        for table, (file, names) in enumerate(tables.items()):
            parts: dict[tuple[Any, ...], int] = {}
            views = [_number(self.page_tree(states[name]), parts) for name in names]
            names_of: dict[tuple[str, ...], int] = {}
            after = [[homes[other] for other in following[name]] for name in names]
            yield (
                file,
                {
                    "keys": names,
                    "views": views,
                    "leads_to": [[home[1] if home[0] == table else home for home in row] for row in after],
                    "files": list(tables),
                    "parts": [_as_json(part, names_of) for part in parts],
                    "names": list(map(list, names_of)),
                },
            )

    def still(self) -> Node:
        """Returns what is shown where there is neither a kernel nor the book's module."""
        return reading.still(self.title, self.page_body(self.page_first()))

    def heard(self, name: str) -> None:
        """Does what a button of the body asks for, by its name where there are several."""

    def show(self, *_change: object) -> None:
        """Brings what the notebook shows up to date."""
        late = _("No answer from the kernel yet. If this stays, run this cell again.")
        below = [*self.body(self.state), node("p", late, class_="late")]
        self.view = self._tree(self.state, self.controls(self.state), below)

    def page_tree(self, state: State) -> Node:
        """Returns all that a page shows for a state."""
        return self._tree(state, self.page_controls(state), self.page_body(state))

    def next_states(self, state: State) -> list[State]:
        """Returns for each option on a page, in their order, the state that it leads to."""
        return [
            self.page_settled(controls.with_value(state, control.path, value))
            for group in self.page_controls(state)
            for control in group.controls
            for value in controls.leads_to(control)
        ]

    def to_html(self, still: Node | None = None) -> str:
        """Returns the widget for a page without a kernel.

        Where the page loads `widget.js`, the element comes to life; elsewhere what is inside it stays.
        """
        inside = shapes.markup(still or self.still())
        if self.carries_table:
            _file, table = next(self.page_tables())
            text = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
            text = text.replace("<", "\\u003c")
            inside = f'<script type="application/json">{text}</script>{inside}'
        first = self.page_first()
        file = table_file(self.name, language(), self.page_part(first))
        return (
            f'<course-{self.kind} data-table="{file}" data-first="{key(first)}">{inside}</course-{self.kind}>'
        )

    def __repr__(self) -> str:
        return "\n".join(reading.lines(self.still()))

    def _tree(self, state: State, groups: Sequence[Group], below: Sequence[Node]) -> Node:
        return node(
            "div",
            node("div", *(controls.group_node(group, state) for group in groups), class_="controls"),
            *below,
            class_=f"widget {self.kind}",
            role="group",
            lang=language(),
            aria_label=self.title,
        )

    def _reachable(self) -> tuple[dict[str, State], dict[str, list[str]]]:
        """Returns each state that choices lead to, under its key, and the keys of those that follow."""
        first = self.page_first()
        states = {key(first): first}
        following: dict[str, list[str]] = {}
        while waiting := [name for name in states if name not in following]:
            for name in waiting:
                after = self.next_states(states[name])
                following[name] = [key(state) for state in after]
                states |= dict(zip(following[name], after, strict=True))
        return states, following

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**options) or ({}, {})
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        still = self.still()
        data = {**data, "text/plain": "\n".join(reading.lines(still))}
        if "google.colab" not in sys.modules:  # it might prefer the element, which needs the book's module
            data["text/html"] = self.to_html(still)
        return data, metadata

    def _hear(self, *message: Any) -> None:
        """Answers on the kernel's own loop: JupyterLab has messages handled in a thread beside the cells."""
        if self._loop is None:
            self._answer(*message)
        else:
            self._loop.call_soon_threadsafe(self._answer, *message)

    def _answer(self, _widget: Any, message: Any, _buffers: Any) -> None:
        if message.get("kind") == "change":
            self.state = self.settled(
                controls.with_value(self.state, tuple(message["path"]), message["value"])
            )
        if message.get("kind") == "press":
            self.heard(message.get("name") or "")
        self.send({"kind": "answered"})  # also where nothing changed: the controls must show the state again


class Explorer(TreeWidget):
    """A widget for choosing and looking."""

    kind = "explorer"


def _number(tree: Node | str, parts: dict[tuple[Any, ...], int]) -> int | str:
    """Returns the number of a node among different nodes and attributes; a text is left as it is."""
    if isinstance(tree, str):
        return tree
    tag, attributes, *children = tree
    whose = parts.setdefault(tuple(attributes.items()), len(parts))
    whole = tag, whose, *(_number(child, parts) for child in children)
    return parts.setdefault(whole, len(parts))


def _as_json(part: tuple[Any, ...], names_of: dict[tuple[str, ...], int]) -> list[Any]:
    """Returns a node as a list, and attributes, which are pairs, as values behind their names' place."""
    if part and not isinstance(part[0], tuple):
        return list(part)
    names = tuple(name for name, _value in part)
    return [names_of.setdefault(names, len(names_of)), *(value for _name, value in part)]


def key(state: State) -> str:
    """Returns a short name for a state, the same everywhere.

    >>> key({"size": 2})
    '8400ba15'
    """
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=4).hexdigest()


def table_file(name: str, code: str, part: str = "") -> str:
    """Returns the name of the file with the views of a widget, or with a part of them, in a language."""
    return f"{name}{part}.{code}.json"
