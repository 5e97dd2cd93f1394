"""The loss scaling explorer: choose replicas, examples and a division, and see which gradient follows."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _, join_sentences, later
from course_lib.pictures.shapes import Node, node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from lessons.strategies.boxes import scheme_image
from lessons.strategies.custom_training import loss_scaling_picture as drawings
from lessons.strategies.custom_training.loss_scaling import DIVISIONS, GLOBAL, LossScaling


class LossScalingExplorer(Explorer):
    """Lets the reader divide the losses of a batch in five ways, and shows the gradient beside the right one.

    Args:
        num_replicas: the number of replicas shown first: 2 or 4.
        batch_size: the batch size shown first: 4 or 8.
        num_examples: how many examples the batch has at first, from 1 to the batch size.
        division: the division shown first, one of `loss_scaling.DIVISIONS`.
    """

    name = "loss_scaling"
    title = later("Loss scaling explorer")

    def __init__(
        self, num_replicas: int = 2, batch_size: int = 4, num_examples: int = 4, division: str = GLOBAL
    ) -> None:
        state: State = {"num_replicas": num_replicas, "batch_size": batch_size}
        state |= {"num_examples": num_examples, "division": division}
        super().__init__(state)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the numbers of replicas, the batch sizes, the examples of this batch and the divisions."""
        examples = range(1, state["batch_size"] + 1)
        divisions = [(division, drawings.division_text(division)) for division in DIVISIONS]
        return [
            Group(_("Replicas"), [numbers(("num_replicas",), (2, 4))]),
            Group(_("Batch size"), [numbers(("batch_size",), (4, 8))]),
            Group(_("Examples in this batch"), [numbers(("num_examples",), examples)]),
            Group(_("Divide by"), [Choice(("division",), divisions)]),
        ]

    def settled(self, state: State) -> State:
        """Returns the state with no more examples than fit in the batch."""
        return {**state, "num_examples": min(state["num_examples"], state["batch_size"])}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the code, a verdict, each replica's losses, and what comes of them beside what is right."""
        scaling, code_title = LossScaling(**state), _("Code on each replica")
        code = node("pre", drawings.code(scaling))
        shown = scheme_image(drawings.scheme_of(scaling), fits=True)
        results = pieces.bars(drawings.results(scaling))
        return [
            pieces.facts({_("Model"): "y = 3 x, |y - (2 x - 1)|"}),
            # The reader can move the code where it is too wide.
            pieces.panel(
                code_title,
                node("div", code, class_="listing", role="region", aria_label=code_title, tabindex="0"),
            ),
            pieces.spoken("told", join_sentences(drawings.sentences(scaling))),
            pieces.panels(
                [pieces.panel(_("Each replica returns"), shown), pieces.panel(_("Result"), results)]
            ),
        ]
