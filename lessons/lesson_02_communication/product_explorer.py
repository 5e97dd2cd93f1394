"""The product explorer: choose the layouts of two factors, and see what the devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from course_lib.errors import CourseError
from course_lib.explorers.observing import ObservingExplorer, why_not_on_a_page
from course_lib.i18n import _
from course_lib.pictures import communication as drawings
from course_lib.pictures import communication_rules as rules
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node, node
from course_lib.specs.communication import Communication, Step
from course_lib.specs.compared import Compared, Pair
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

    The properties `mesh`, `left`, `right`, `wanted` and `communication` follow the reader's clicks; where the
    choice is illegal, they raise a `CourseError` that says why.

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
        self._observe = observe
        super().__init__(states.first_state(mesh, shapes, left, right, wanted))

    @property
    def mesh(self) -> MeshSpec:
        """The mesh that the reader chose."""
        return states.mesh_of(self.state)

    @property
    def left(self) -> Sharding:
        """The first factor, `A`, as the reader laid it out."""
        return states.factors_of(self.state)[0]

    @property
    def right(self) -> Sharding:
        """The second factor, `B`, as the reader laid it out."""
        return states.factors_of(self.state)[1]

    @property
    def wanted(self) -> LayoutSpec | None:
        """The layout that what reads the product wants, or None."""
        return states.wanted_of(self.state)

    @property
    def communication(self) -> Communication:
        """What the devices exchange for the choice."""
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

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the costs, the tensors, the steps and what really ran, or why the choice is illegal."""
        try:
            predicted = states.communication_of(state)
        except CourseError as error:
            return [
                pieces.refusal(error),
                *pieces.button(_button_text(), why_not=_("Nothing to run: the choice is illegal.")),
            ]
        reality = self.reality(state)
        ran = reality if isinstance(reality, Compared) else None
        shown = map(_step, count(1), predicted.steps) if ran is None else map(_pair, count(1), ran.pairs)
        why_not = why_not_on_a_page() if page else "" if self._observe else _why_no_function()
        return [
            _facts(predicted),
            pieces.panels([*_tensors(predicted), *shown]),
            pieces.spoken("told", words.totals(predicted.collectives) if ran is None else ""),
            *pieces.button(_button_text(), why_not=why_not),
            pieces.spoken("verdict", str(reality) if ran is None else _verdict(ran)),
        ]

    def waiting(self) -> str:
        """Returns what is said until the devices answer."""
        return _("Running it. The first time this starts TensorFlow and takes some seconds.")

    def compared(self) -> Compared:
        """Returns what devices ran for the choice, beside the prediction.

        Raises:
            CourseError: the choice is illegal, or the explorer has no `observe`.
        """
        states.communication_of(self.state)  # which refuses what is illegal
        if self._observe is None:
            raise CourseError(
                _("This explorer cannot run the product."),
                allowed=_("an explorer that was given a function observe"),
                cure=_why_no_function(),
            )
        return self._observe(self.left, self.right, self.wanted)


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
    told = [words.tensor_text(name, each) for name, each in words.tensor_names(predicted)]
    held = words.holding_lines(predicted)
    return [
        pieces.panel(_("Factors and product"), _images(drawings.tensor_drawings(predicted), told)),
        pieces.panel(_("Block of each device"), _images(drawings.holding_drawings(predicted), held)),
    ]


def _step(number: int, step: Step) -> Node:
    shown = [drawings.change_drawing(step), drawings.collective_drawing(step.collective)]
    heard = words.collective_text(step.collective)
    return pieces.panel(words.step_title(number, step), _images(shown, heard), [rules.told(step)])


def _pair(number: int, pair: Pair) -> Node:
    title, *heard = words.pair_lines(number, pair)
    exchanges = _images(drawings.pair_drawings(pair), heard)
    if pair.step is None:
        return pieces.panel(title, exchanges)
    change = _images([drawings.change_drawing(pair.step)], [title])
    notes = [rules.told(pair.step), *rules.emulated(pair)]
    return pieces.panel(title, node("div", change, exchanges), notes)


def _images(shown: Sequence[Drawing], told: Sequence[str]) -> Node:
    """Returns drawings that flow like words, each with some air at its right."""
    wide = [replace(each, width=each.width + _AIR) for each in shown]
    return pieces.images(wide, "\n".join(told))


def _verdict(ran: Compared) -> str:
    return "\n".join([*words.both_totals(ran), words.verdict(ran)])


def _button_text() -> str:
    return _("Run it on the devices and compare")


def _why_no_function() -> str:
    return _("The button needs a function: ProductExplorer(observed.product).")
