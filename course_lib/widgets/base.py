"""The base of every widget: it lives in a notebook, and as an element on a page without a kernel.

A widget is its controls and one function from what the reader chose to what is shown. Both hosts show the
same tree of nodes, which the one ES module `static/widget.js` paints: in a notebook each choice goes to
Python and comes back as a new tree; on a page the module takes the tree out of a table that was made before.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import sys
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from course_lib.errors import CourseError
from course_lib.i18n import _, language
from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node, node
from course_lib.specs.drawing import Picture
from course_lib.widgets import controls
from course_lib.widgets.controls import Group, State

MODULE = Path(__file__).parent / "static" / "widget.js"


class TreeWidget(anywidget.AnyWidget):
    """Shows what follows from a few choices; `state` and `view` follow what the reader does.

    A subclass gives what is abstract here, and `__repr__`. What it returns follows from the given state, so
    that a page without a kernel can be given every answer beforehand.

    Args:
        state: what is chosen first, as plain JSON values.
    """

    _esm = MODULE
    _ipython_display_ = None  # ipywidgets 7 would show itself with it, and leave the bundle below out

    kind: ClassVar[
        str
    ]  # "explorer": the element `<course-explorer>` of a page, and the class of what it shows

    state = traitlets.Dict().tag(sync=True)
    view: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, state: State) -> None:
        super().__init__(state=state)
        self.show()
        self.observe(self.show, "state")
        self._loop = _running_loop()
        self.on_msg(self._hear)

    @abstractmethod
    def title(self) -> str:
        """Returns its name in the reader's language."""

    @abstractmethod
    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns what the reader can choose now; on a page nothing to type."""

    @abstractmethod
    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state made whole after a choice; on a page it must be one that its table has."""

    @abstractmethod
    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns what is shown below the controls."""

    @abstractmethod
    def for_a_page(self) -> dict[str, Any]:
        """Returns what the module needs on a page: a `table`, or the name of its file and the first view."""

    @abstractmethod
    def still(self) -> str:
        """Returns the HTML that a page shows where scripts do not run."""

    def pressed(self) -> None:
        """Does what the button in the body asks for."""

    def heard(self, name: str) -> None:  # noqa: ARG002 - of several buttons
        """Does what a button asks for."""
        self.pressed()

    def show(self, *_change: object) -> None:
        """Brings what the notebook shows up to date."""
        self.view = shapes.to_json(self.tree(self.state, page=False))

    def tree(self, state: State, *, page: bool) -> Node:
        """Returns all that is shown for a state."""
        groups = [controls.group_node(group, state) for group in self.controls(state, page=page)]
        return node(
            "div",
            node("div", *groups, class_="controls"),
            *self.body(state, page=page),
            node("p", _late_on_a_page() if page else _late_in_a_notebook(), class_="late"),
            class_=f"widget {self.kind}",
            role="group",
            lang=language(),
            aria_label=self.title(),
        )

    def next_states(self, state: State) -> list[State]:
        """Returns for each option on a page, in their order, the state that it leads to."""
        return [
            self.settled(controls.with_value(state, control.path, value), page=True)
            for group in self.controls(state, page=True)
            for control in group.controls
            for value in controls.leads_to(control)
        ]

    def to_html(self) -> str:
        """Returns the widget for a page without a kernel.

        Where the page loads `widget.js`, the element comes to life; elsewhere what is still inside it stays.
        """
        text = json.dumps(self.for_a_page(), ensure_ascii=False, separators=(",", ":"))
        text = text.replace("<", "\\u003c")
        script = f'<script type="application/json">{text}</script>'
        return f"<course-{self.kind}>{script}{self.still()}</course-{self.kind}>"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**options) or ({}, {})
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = {**data, "text/plain": repr(self)}
        if "google.colab" not in sys.modules:  # it might prefer the element, which needs the book's module
            data["text/html"] = self.to_html()
        return data, metadata

    def _hear(self, *message: Any) -> None:
        """Answers on the kernel's own loop: JupyterLab has messages handled in a thread beside the cells."""
        if self._loop is None:
            self._answer(*message)
        else:
            self._loop.call_soon_threadsafe(self._answer, *message)

    def _answer(self, _widget: Any, message: Any, _buffers: Any) -> None:
        if message.get("kind") == "change":
            changed = controls.with_value(self.state, tuple(message["path"]), message["value"])
            self.state = self.settled(changed, page=False)
        if message.get("kind") == "press":
            self.heard(message.get("name") or "")
        self.send({"kind": "answered"})  # also where nothing changed: the controls must show the state again


class Explorer(TreeWidget):
    """A widget for choosing and looking, with a picture; its table for pages is a file that they share."""

    kind = "explorer"

    name: ClassVar[str]  # of its table of views on a page

    @abstractmethod
    def figure(self) -> Picture:
        """Returns the picture of what is chosen.

        Raises:
            CourseError: the choice is illegal.
        """

    def for_a_page(self) -> dict[str, Any]:
        """Returns the first view, where its options lead, and the name of the file with the other views."""
        first = self.settled(self.state, page=True)
        return {
            "table": table_file(self.name, language()),
            "view": shapes.to_json(self.tree(first, page=True)),
            "leads_to": [key(state) for state in self.next_states(first)],
        }

    def still(self) -> str:
        """Returns the picture, or why there is none."""
        try:
            return self.figure().svg
        except CourseError as error:
            return f"<pre>{html.escape(str(error))}</pre>"

    def __repr__(self) -> str:
        try:
            return self.figure().text
        except CourseError as error:
            return str(error)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Returns the loop that runs this code, as the kernel's does; None outside a kernel."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def key(state: State) -> str:
    """Returns a short name for a state, the same everywhere.

    >>> key({"size": 2})
    '8400ba15'
    """
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=4).hexdigest()


def table_file(name: str, code: str) -> str:
    """Returns the name of the file with the views of an explorer in a language."""
    return f"{name}.{code}.json"


def _late_in_a_notebook() -> str:
    return _("No answer from the kernel yet. If this stays, run this cell again.")


def _late_on_a_page() -> str:
    return _("The table of choices is not here yet. If this stays, load the page again.")
