"""A puzzle to play: a choice by radio buttons, and at once what it gives and whether that is a solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from course_lib.errors import CourseError
from course_lib.explorers.stepping import lanes_panel
from course_lib.i18n import _, labelled
from course_lib.pictures.communication_text import bytes_text
from course_lib.pictures.shapes import Node, node
from course_lib.specs.mesh import UNSHARDED
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Choice, Group, State
from course_lib.widgets.pieces import words
from lessons.scale.how_long.puzzles import PUZZLES


class Puzzle(TreeWidget):
    """Lets the reader choose a mesh and what splits each axis, and judges it; a page says what is asked.

    Args:
        number: that of the puzzle, from 1.
    """

    kind = "puzzle"

    def __init__(self, number: int) -> None:
        self.number, self.spec = number, PUZZLES[number - 1]
        super().__init__({"mesh": 0, "splits": dict.fromkeys(self.spec.task.axes, UNSHARDED)})

    @property
    def name(self) -> str:
        """What its table on a page is called, and what a browser keeps the reader's choice under."""
        return f"puzzle_{self.number}"

    @property
    def title(self) -> str:
        """Its name in the reader's language."""
        return _("Puzzle {number}", number=self.number)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the meshes, and for each axis what may split it."""
        task = self.spec.task
        meshes = [(at, str(mesh)) for at, mesh in enumerate(task.meshes)]
        options = [(name, name) for name in task.options(task.meshes[state["mesh"]])]
        return [
            Group(_("Mesh"), [Choice(("mesh",), meshes)]),
            *(
                Group(f"`{axis}`: {length:,}", [Choice(("splits", axis), options)])
                for axis, length in task.axes.items()
            ),
        ]

    def settled(self, state: State) -> State:
        """Returns the state without mesh dimensions that the chosen mesh lacks."""
        options = self.spec.task.options(self.spec.task.meshes[state["mesh"]])
        splits = {axis: name if name in options else UNSHARDED for axis, name in state["splits"].items()}
        return {**state, "splits": splits}

    def body(self, state: State) -> Sequence[Node]:
        """Returns each limit and whether it is kept, whether that solves the puzzle, and the parts."""
        try:
            mesh = self.spec.task.meshes[state["mesh"]]
            found = self.spec.task.found(mesh, state["splits"])
        except CourseError as error:
            return [*self._judged({}), pieces.refusal(error)]
        panels = [
            pieces.panel(_names()[quantity], _list(quantity, parts))
            for quantity, parts in found.parts.items()
            if parts
        ]
        if found.events:
            title = _("What a step exchanges")
            panels.append(lanes_panel(title, mesh, found.events, len(found.events)))
        return [*self._judged(found.numbers), pieces.panels(panels)]

    def still(self) -> Node:
        """Returns nothing: without scripts the page has the words around the puzzle."""
        return node("div")

    def _judged(self, numbers: Mapping[str, float]) -> list[Node]:
        """Returns each limit, par, and how good the choice is; without numbers it is illegal."""
        level = self.spec.level(numbers) if numbers else 0
        rows = []
        for quantity, limit in self.spec.limits.items():
            number, mark = "–", ("–", _("not known"))
            if numbers:
                number = _told(quantity, numbers[quantity])
                mark = ("✓", _("kept")) if numbers[quantity] <= limit else ("✗", _("not kept"))
            at_most = _("{number} (at most {limit})", number=number, limit=_told(quantity, limit))
            rows.append(_row(*mark, labelled(_names()[quantity], at_most)))
        quantity, least = self.spec.par
        mark = ("★", _("reached")) if level > 1 else ("☆", _("not reached"))
        par = _("{least} ({quantity})", least=_told(quantity, least), quantity=_names()[quantity])
        rows.append(_row(*mark, labelled(_("Par"), par)))
        said = (
            _("Not solved."),
            _("Solved. Another solution reaches par."),
            _("Solved, at par: no solution takes less."),
        )
        verdict = pieces.spoken("verdict", said[level], data_level=str(level))  # which the module keeps
        return [node("ul", *rows, class_="runs"), verdict]


def _row(mark: str, name: str, said: str) -> Node:
    return node("li", node("strong", mark, role="img", aria_label=name), " ", node("span", *words(said)))


def _list(quantity: str, parts: Mapping[str, float]) -> Node:
    lines = (node("li", *words(labelled(what, _told(quantity, size)))) for what, size in parts.items())
    return node("ul", *lines, class_="exchanges")


def _names() -> dict[str, str]:
    return {
        "held": _("Held by a device"),
        "result": _("AB on a device"),
        "rows": _("Rows of the batch on a device"),
        "activations": _("Activations on a device"),
        "sent": _("Sent by a device"),
        "collectives": _("Collectives"),
        "memory": _("Memory of a device"),
        "seconds": _("Time of a step"),
        "nodes": _("Nodes of a group along `model`"),
    }


def _told(quantity: str, value: float) -> str:
    if quantity in ("collectives", "nodes"):
        return f"{value:.0f}"
    if quantity == "seconds":
        return f"{value:.2f} s"
    return f"{value / 1e9:.1f} GB" if quantity == "memory" else f"{bytes_text(value)} B"


# What makes each puzzle, for the page that holds them all.
ON_PAGES = {f"puzzle_{number}": partial(Puzzle, number) for number in range(1, len(PUZZLES) + 1)}
