"""The loss scaling explorer: choose replicas, examples and a division, and see which gradient follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.errors import one_of, whole_number
from course_lib.i18n import _, join_sentences
from course_lib.pictures import arranging
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State
from lessons.lesson_10_custom_training import loss_scaling_picture as drawings
from lessons.lesson_10_custom_training import loss_scaling_text as texts
from lessons.lesson_10_custom_training.loss_scaling import DIVISIONS, GLOBAL, LossScaling

REPLICAS, BATCH_SIZES = (2, 4), (4, 8)
_BETWEEN = 12.0
WEIGHT = 3  # of y = 3 x; the targets 2 x - 1 make the losses 2, 3, 4, ... and the gradients 1, 2, 3, ...


class LossScalingExplorer(Explorer):
    """Lets the reader divide the losses of a batch in five ways, and shows the gradient beside the right one.

    The property `scaling` follows the reader's clicks.

    Args:
        num_replicas: the number of replicas shown first: 2 or 4.
        batch_size: the batch size shown first: 4 or 8.
        num_examples: how many examples the batch has at first; by default as many as fit, fewer in the last.
        division: the division shown first, one of `specs.loss_scaling.DIVISIONS`.

    Raises:
        CourseError: one of them is not among the choices.
    """

    name = "loss_scaling"

    def __init__(
        self,
        num_replicas: int = 2,
        batch_size: int = 4,
        num_examples: int | None = None,
        division: str = GLOBAL,
    ) -> None:
        cure = _("Write for example LossScalingExplorer(num_replicas=4, batch_size=8).")
        problem = _("{count!r} is no number of replicas for this explorer.", count=num_replicas)
        one_of(num_replicas, REPLICAS, problem, cure=cure)
        problem = _("{size!r} is no batch size for this explorer.", size=batch_size)
        one_of(batch_size, BATCH_SIZES, problem, cure=cure)
        count = batch_size if num_examples is None else num_examples
        problem = _("The batch cannot have {count!r} examples.", count=count)
        count = whole_number(count, problem, least=1, most=batch_size, cure=cure)
        problem = _("The losses are not divided by {division!r}.", division=division)
        one_of(division, DIVISIONS, problem, cure=cure)
        super().__init__(_state(num_replicas, batch_size, count, division))

    @property
    def scaling(self) -> LossScaling:
        """The losses as the reader divides them."""
        return scaling_of(self.state)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Loss scaling explorer")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the numbers of replicas, the batch sizes, the examples of this batch and the divisions."""
        del page
        counts = range(1, state["batch_size"] + 1)
        return [
            Group(_("Replicas"), [_choice("num_replicas", REPLICAS)]),
            Group(_("Batch size"), [_choice("batch_size", BATCH_SIZES)]),
            Group(_("Examples in this batch"), [_choice("num_examples", counts)]),
            Group(
                _("Divide by"),
                [Choice(("division",), [(each, texts.division_text(each)) for each in DIVISIONS])],
            ),
        ]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state with no more examples than fit in the batch."""
        del page
        return {**state, "num_examples": min(state["num_examples"], state["batch_size"])}

    def figure(self) -> Figure:
        """Returns the picture of what is chosen."""
        return figure(self.scaling)

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the code, a verdict, each replica's losses, and what comes of them beside what is right."""
        del page
        scaling = scaling_of(state)
        heard = "\n".join(drawings.lines(scaling))
        shown = pieces.image(drawings.parts_drawing(scaling), heard)
        results = pieces.image(arranging.stacked(drawings.result_drawings(scaling), _BETWEEN), heard)
        mark = "✓ " if scaling.is_right else "✗ "
        return [
            pieces.facts({_("Model"): f"y = {WEIGHT} x, |y - (2 x - 1)|"}),
            pieces.panel(_code_title(), _code(scaling)),
            pieces.spoken("told", mark + join_sentences(texts.sentences(scaling))),
            pieces.panels(
                [pieces.panel(_("Each replica returns"), shown), pieces.panel(_("Result"), results)]
            ),
        ]


def scaling_of(state: State) -> LossScaling:
    """Returns the losses that a state describes: those of the first examples of a line."""
    inputs = range(1, state["num_examples"] + 1)
    return LossScaling.of_a_line(
        WEIGHT,
        inputs,
        [2 * x - 1 for x in inputs],
        state["num_replicas"],
        batch_size=state["batch_size"],
        division=state["division"],
    )


def _code(scaling: LossScaling) -> Node:
    """Returns what a replica evaluates, which the reader can move where it is too wide."""
    program = node("pre", texts.code(scaling))
    return node("div", program, class_="listing", role="region", aria_label=_code_title(), tabindex="0")


def _code_title() -> str:
    return _("Code on each replica")


def _state(num_replicas: int, batch_size: int, num_examples: int, division: str) -> State:
    return {
        "num_replicas": num_replicas,
        "batch_size": batch_size,
        "num_examples": num_examples,
        "division": division,
    }


def _choice(name: str, values: Sequence[Any]) -> Choice:
    return Choice((name,), [(value, str(value)) for value in values])
