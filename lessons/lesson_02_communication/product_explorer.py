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
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets import pieces
from course_lib.widgets.controls import Group, State
from lessons.lesson_02_communication import product_state as states

Observe = Callable[[Sharding, Sharding, LayoutSpec | None], Compared]
_AIR = 12.0


class ProductExplorer(ObservingExplorer):
    """Lets the reader choose the layouts of two factors, and shows what their product costs.

    The properties `mesh`, `left`, `right`, `wanted` and `communication` follow the reader's clicks.

    Args:
        observe: runs the product on real devices for the button: `course_lib.observed.product`. Without it
            the button is disabled.
        mesh: the mesh shown first, of 3 dimensions and 16 devices at most.
        shapes: rows and columns of `A` and of `B`.
        left: the layout of `A` shown first; it may be one that is illegal. By default the first mesh
            dimension splits the axis that is summed over, in both factors.
        right: the layout of `B` shown first.
        wanted: the layout that the reader of the product wants first, or None.

    Raises:
        CourseError: the explorer cannot show the choice, or the factors cannot be multiplied.
    """

    name = "product"
    example = "ProductExplorer(observed.product)"

    def __init__(
        self,
        observe: Observe | None = None,
        *,
        mesh: MeshSpec = states.MESHES[0],
        shapes: Sequence[Sequence[int]] = states.SHAPES,
        left: Sequence[str] | None = None,
        right: Sequence[str] | None = None,
        wanted: Sequence[str] | None = None,
    ) -> None:
        super().__init__(observe, states.first_state(mesh, shapes, left, right, wanted))

    @property
    def mesh(self) -> MeshSpec:
        """The mesh that the reader chose."""
        return states.mesh_of(self.state)

    @property
    def left(self) -> Sharding:
        """The first factor, `A`, as the reader laid it out.

        Raises:
            CourseError: a layout is illegal.
        """
        return states.factors_of(self.state)[0]

    @property
    def right(self) -> Sharding:
        """The second factor, `B`, as the reader laid it out.

        Raises:
            CourseError: a layout is illegal.
        """
        return states.factors_of(self.state)[1]

    @property
    def wanted(self) -> LayoutSpec | None:
        """The layout that what reads the product wants, or None.

        Raises:
            CourseError: it is illegal.
        """
        return states.wanted_of(self.state)

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
        return states.page_state(state) if page else states.whole_state(state)

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
