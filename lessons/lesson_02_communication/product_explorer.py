"""The product explorer: choose the layouts of two factors, and see what the devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from course_lib.errors import CourseError
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
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Group, State
from lessons.lesson_02_communication import product_state as states

Observe = Callable[[Sharding, Sharding, LayoutSpec | None], Compared]
_AIR = 12.0


class ProductExplorer(Explorer):
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
        self._reality: tuple[State, Compared | str] | None = None  # of the state that it belongs to
        super().__init__(states.first_state(mesh, shapes, left, right, wanted))

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

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the costs, the tensors, the steps and what really ran, or why the choice is illegal."""
        reality = self._reality[1] if self._reality and self._reality[0] == state else ""
        try:
            predicted = states.communication_of(state)
        except CourseError as error:
            return [pieces.refusal(error), *pieces.button(_button_text(), why_not=_why_illegal())]
        ran = reality if isinstance(reality, Compared) else None
        rows = drawings.step_rows(predicted) if ran is None else drawings.pair_rows(ran)
        why_not = _why_not_on_a_page() if page else "" if self._observe else _why_no_function()
        return [
            _facts(predicted),
            pieces.panels([*_tensors(predicted), *map(_row, rows)]),
            pieces.spoken("told", words.totals(predicted.collectives) if ran is None else ""),
            *pieces.button(_button_text(), why_not=why_not),
            pieces.spoken("verdict", str(reality) if ran is None else _verdict(ran)),
        ]

    def observe_choice(self) -> Compared:
        """Runs the product of the choice, shows what ran in the explorer, and returns the comparison.

        Raises:
            CourseError: the choice is illegal, or the explorer has no `observe`.
        """
        state, left, right, wanted = self.state, self.left, self.right, self.wanted
        states.communication_of(state)
        if self._observe is None:
            raise CourseError(
                _("This explorer cannot run the product."),
                allowed=_("an explorer that was given a function observe"),
                cure=_why_no_function(),
            )
        compared = self._observe(left, right, wanted)
        self._reality = (state, compared)
        self.show()
        return compared

    def pressed(self) -> None:
        """Runs the product of the choice and shows what ran, or what went wrong, in the explorer."""
        state = self.state
        if self._reality and self._reality[0] == state and isinstance(self._reality[1], Compared):
            return
        self._reality = (state, _waiting())
        self.show()
        try:
            self.observe_choice()
        except CourseError as error:
            self._reality = (state, f"✗ {error}")
        except Exception as error:
            self._reality = (state, f"✗ {type(error).__name__}: {error}")
        self.show()


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


def _verdict(ran: Compared) -> str:
    return "\n".join([*words.both_totals(ran), words.verdict(ran)])


def _button_text() -> str:
    return _("Run it on the devices and compare")


def _waiting() -> str:
    return _("Running it. The first time this starts TensorFlow and takes some seconds.")


def _why_illegal() -> str:
    return _("Nothing to run: the choice is illegal.")


def _why_no_function() -> str:
    return _("The button needs a function: ProductExplorer(observed.product).")


def _why_not_on_a_page() -> str:
    return _("The button needs a running notebook: open this lesson in Jupyter or Colab.")
