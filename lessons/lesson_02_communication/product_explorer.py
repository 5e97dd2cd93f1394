"""The product explorer: choose the layouts of two factors, and see what the devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from course_lib.explorers.observing import ObservingExplorer
from course_lib.i18n import _
from course_lib.pictures import communication as drawings
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node
from course_lib.specs.communication import Communication
from course_lib.specs.compared import Compared
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets import pieces
from course_lib.widgets.controls import Group, State
from lessons.lesson_02_communication import product_state as states

Observe = Callable[[Sharding, Sharding, LayoutSpec | None], Compared]
_AIR = 12.0


class ProductExplorer(ObservingExplorer):
    """Lets the reader choose the layouts of two factors, and shows what their product costs.

    The property `communication` follows the reader's clicks.

    Args:
        observe: runs the product on real devices for the button: `course_lib.observed.product`. Without it
            the button is disabled.
    """

    name = "product"
    example = "ProductExplorer(observed.product)"

    def __init__(self, observe: Observe | None = None) -> None:
        super().__init__(observe, states.first_state())

    @property
    def communication(self) -> Communication:
        """What the devices exchange for the choice.

        Raises:
            CourseError: the choice is illegal.
        """
        return states.communication_of(self.state)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Product explorer")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the meshes and every layout; on a page a reader of the product on one mesh only."""
        return states.groups(state, page=page)

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state made whole after a choice."""
        return states.whole_state(state, page=page)

    def figure(self) -> Figure:
        """Returns the picture of the choice.

        Raises:
            CourseError: the choice is illegal.
        """
        return figure(self.communication)

    def button_text(self) -> str:
        """Returns what stands on the button."""
        return _("Run it on the devices and compare")

    def waiting(self) -> str:
        """Returns what is said while the product runs."""
        return _("Running it. The first time this starts TensorFlow and takes some seconds.")

    def run_for_real(self, state: State) -> Compared | None:
        """Runs the product on real devices."""
        states.communication_of(state)
        return self._observe(*states.factors_of(state), states.wanted_of(state)) if self._observe else None

    def verdict(self, seen: Compared) -> str:
        """Returns what was predicted and seen in all, and whether they agree."""
        return "\n".join([*words.both_totals(seen), words.verdict(seen)])

    def shown(
        self, state: State, seen: Compared | None, *, page: bool
    ) -> tuple[Sequence[Node], Sequence[Node]]:
        """Returns the costs, the tensors, the steps, and what really ran in their place."""
        del page
        predicted = states.communication_of(state)
        rows = drawings.step_rows(predicted) if seen is None else drawings.pair_rows(seen)
        totals = words.totals(predicted.collectives) if seen is None else ""
        panels = pieces.panels([*_tensors(predicted), *map(_row, rows)])
        return [_facts(predicted), panels, pieces.spoken("told", totals)], []


def _facts(predicted: Communication) -> Node:
    sent = words.bytes_text(predicted.bytes_sent)
    return pieces.facts(
        {
            _("Layout of AB"): predicted.result.layout,
            _("Collectives"): len(predicted.collectives),
            _("Bytes sent by each device"): sent,
        }
    )


def _tensors(predicted: Communication) -> list[Node]:
    told = words.tensor_lines(predicted)
    held = words.holding_lines(predicted)
    return [
        pieces.panel(_("Factors and product"), _images(drawings.tensor_drawings(predicted), told)),
        pieces.panel(_("Block of each device"), _images(drawings.holding_drawings(predicted), held)),
    ]


def _row(row: drawings.Row) -> Node:
    """Returns a step; what really ran stands below what changes."""
    changes = [] if row.change is None else [row.change]
    return pieces.panel(row.title, _images([*changes, *row.exchanges], row.heard), row.why)


def _images(shown: Sequence[Drawing], told: Sequence[str]) -> Node:
    """Returns drawings that flow like words, each with some air at its right."""
    wide = [replace(each, width=each.width + _AIR) for each in shown]
    return pieces.images(wide, "\n".join(told))
