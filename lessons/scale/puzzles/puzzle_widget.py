"""A puzzle to play: choices by radio buttons, and at once what they give and whether that is a solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from course_lib.errors import CourseError
from course_lib.i18n import _, labelled
from course_lib.pictures import arranging
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.base import TreeWidget
from course_lib.widgets.controls import Choice, Group, State
from course_lib.widgets.pieces import words
from lessons.scale.puzzles.all_puzzles import PUZZLES
from lessons.scale.puzzles.bars import key, limit_bar
from lessons.scale.puzzles.panels import panels_of
from lessons.scale.puzzles.quantities import COUNTED, IN_ONE_PIECE, name_of, part_colours, part_names, told


class Puzzle(TreeWidget):
    """Lets the reader choose a mesh and its splits, or a whole plan, and judges it; a page says what it asks.

    Args:
        number: that of the puzzle, from 1.
    """

    kind = "puzzle"

    def __init__(self, number: int) -> None:
        self.number, self.spec = number, PUZZLES[number - 1]
        super().__init__(self.spec.task.settled(self.spec.first))

    @property
    def name(self) -> str:
        """What its table on a page is called, and what a browser keeps the reader's choice under."""
        return f"puzzle_{self.number}"

    @property
    def title(self) -> str:
        """Its name in the reader's language."""
        return _("Puzzle {number}", number=self.number)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the questions."""
        return [
            Group(each.heading, [Choice((each.name,), each.options)])
            for each in self.spec.task.questions(state)
        ]

    def settled(self, state: State) -> State:
        """Returns the state without what the chosen mesh does not offer."""
        return self.spec.task.settled(state)

    def body(self, state: State) -> Sequence[Node]:
        """Returns each limit and whether it is kept, whether that solves the puzzle, and the pictures."""
        try:
            found = self.spec.task.found(state)
        except CourseError as error:
            return [*self._judged({}, {}), pieces.refusal(error)]
        return [*self._judged(found.numbers, found.parts), pieces.panels([*panels_of(found)])]

    def still(self) -> Node:
        """Returns nothing: without scripts the page has the words around the puzzle."""
        return node("div")

    def _judged(self, numbers: Mapping[str, float], parts: Mapping[str, Mapping[str, float]]) -> list[Node]:
        """Returns each limit, par, and how good the choice is; without numbers it is illegal."""
        level = self.spec.level(numbers) if numbers else 0
        rows = [self._limit(quantity, numbers, parts.get(quantity, {})) for quantity in self.spec.limits]
        quantity, least = self.spec.par
        mark = ("★", _("reached")) if level > 1 else ("☆", _("not reached"))
        par = _("{least} ({quantity})", least=told(quantity, least), quantity=name_of(quantity))
        rows.append(_row(*mark, labelled(_("Par"), par)))
        said = (
            _("Not solved."),
            _("Solved. Another solution reaches par."),
            _("Solved, at par: no solution takes less.")
            if quantity in COUNTED
            else _("Solved, at par: in the model no solution takes less."),
        )
        verdict = pieces.spoken("verdict", said[level], data_level=str(level))  # which the module keeps
        return [node("ul", *rows, class_="runs limits"), verdict]

    def _limit(self, quantity: str, numbers: Mapping[str, float], parts: Mapping[str, float]) -> Node:
        """Returns a limit, whether it is kept, and the bar that fills."""
        limit = self.spec.limits[quantity]
        number, mark, bars = "–", ("–", _("not known")), []
        if numbers:
            number = told(quantity, numbers[quantity])
            mark = ("✓", _("kept")) if numbers[quantity] <= limit else ("✗", _("not kept"))
            bars = self._bar(quantity, numbers[quantity], parts)
        at_most = _("{number} (at most {limit})", number=number, limit=told(quantity, limit))
        return _row(*mark, labelled(name_of(quantity), at_most), *bars)

    def _bar(self, quantity: str, number: float, parts: Mapping[str, float]) -> list[Node | str]:
        """Returns the bar of a quantity up to its limit, with its parts where these have colours."""
        of_par, least = self.spec.par
        of = self.spec.limits[quantity], least if quantity == of_par else None
        colours = part_colours(quantity, parts)
        if not colours:
            drawing = limit_bar({quantity: number}, *of, {quantity: IN_ONE_PIECE})
            shown = arranging.part_of_a_page(drawing)
            return [node("div", shown, class_="flow fits", aria_hidden="true")]  # the line above it says all
        names = part_names(parts)
        lines = {part: f"{names[part]} {told(quantity, size)}" for part, size in parts.items()}
        bar = arranging.stacked([limit_bar(parts, *of, colours), key(colours, lines)], 3)
        return [" ", pieces.image(bar, _(", ").join(lines.values()))]


def _row(mark: str, name: str, said: str, *below: Node | str) -> Node:
    shown = node("strong", mark, role="img", aria_label=name)
    return node("li", shown, " ", node("span", *words(said)), *below)


# What makes each puzzle, for the page that holds them all.
ON_PAGES = {f"puzzle_{number}": partial(Puzzle, number) for number in range(1, len(PUZZLES) + 1)}
