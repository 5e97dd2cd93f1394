"""The product explorer: choose the layouts of two factors, and see what the devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from course_lib.explorers.observing import ObservingExplorer
from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures import communication as drawings
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node
from course_lib.pictures.text import devices_text
from course_lib.specs.communication import Communication
from course_lib.specs.compared import Compared
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets import pieces
from course_lib.widgets.controls import Group, State
from lessons.lesson_02_communication import product_state as states

Observe = Callable[[Sharding, Sharding, LayoutSpec | None], Compared]
_AIR, _SIZE = 12.0, 12.0


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
    held = _holding_lines(predicted)
    return [
        pieces.panel(_("Factors and product"), _images(drawings.tensor_drawings(predicted), told)),
        pieces.panel(_("Block of each device"), _images(_holding_drawings(predicted), held)),
    ]


def _row(row: drawings.Row) -> Node:
    """Returns a step; what really ran stands below what changes."""
    changes = [] if row.change is None else [row.change]
    return pieces.panel(row.title, _images([*changes, *row.exchanges], row.heard), row.why)


def _images(shown: Sequence[Drawing], told: Sequence[str]) -> Node:
    """Returns drawings that flow like words, each with some air at its right."""
    wide = [replace(each, width=each.width + _AIR) for each in shown]
    return pieces.images(wide, "\n".join(told))


def _holding_drawings(communication: Communication) -> list[Drawing]:
    """Returns for each device its block of each tensor."""
    named = words.tensor_names(communication)
    return [_holding(device_id, named) for device_id in range(communication.result.mesh.size)]


def _holding(device_id: int, named: Sequence[tuple[str, Sharding]]) -> Drawing:
    rows = arranging.beside([_held(name, sharding, device_id) for name, sharding in named], 8)
    width, height = rows.width + 16, rows.height + 30
    edge = cell((0.5, 0.5, width - 1, height - 1), fill="none", radius=6)
    number = shapes.text(8, 15, str(device_id), size=_SIZE, bold=True)
    return Drawing(width, height, (*edge, number, rows.at(8, 22)))


def _held(name: str, sharding: Sharding, device_id: int) -> Drawing:
    """Returns the block that a device holds of a tensor, as a swatch with its letter."""
    width = max(30.0, arranging.text_width(name, _SIZE) + 4)
    heading = shapes.text(width / 2, 10, name, size=11, anchor="middle", fill=shapes.SOFT_INK)
    label = Line(_block_of(sharding, device_id), 5, _SIZE, bold=True)
    swatch = cell((0, 15, width, 22), label, fill=sharding.holdings[device_id])
    return Drawing(width, 38, (heading, *swatch))


def _holding_lines(communication: Communication) -> list[str]:
    """Returns for each device the letters of its blocks."""
    named = words.tensor_names(communication)
    return [
        words.headed(devices_text([at]), ", ".join(f"{name} {_block_of(each, at)}" for name, each in named))
        for at in range(communication.result.mesh.size)
    ]


def _block_of(sharding: Sharding, device_id: int) -> str:
    """Returns the letter of the block that a device holds, a small one: tensors are called A and B."""
    return sharding.blocks[sharding.holdings[device_id]].label.lower()
