"""The ring stepper: choose a collective and a number of devices, and step through it, forward and back."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _, join_sentences, later
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, Move, State, numbers
from lessons.layouts.communication import ring_text
from lessons.layouts.communication.ring import ALL_REDUCE, KINDS, LEAST_DEVICES, MOST_DEVICES, Ring
from lessons.layouts.communication.ring_picture import chunks_drawing, legend

WHOLE_BYTES = 4 * 840  # 840 numbers of float32: they make equal chunks for 2 to 8 devices


class RingExplorer(Explorer):
    """Lets the reader step through a collective in a ring, chunk by chunk, forward and back.

    Args:
        kind: the collective shown first: `"all-reduce"`, `"reduce-scatter"` or `"all-gather"`.
        num_devices: the number of devices shown first, from 2 to 8.

    Raises:
        CourseError: another collective, or another number of devices.
    """

    name = "ring"
    title = later("Ring stepper")

    def __init__(self, kind: str = ALL_REDUCE, num_devices: int = 4) -> None:
        Ring(kind, num_devices, WHOLE_BYTES)  # refuses what is no ring
        super().__init__({"kind": kind, "num_devices": num_devices, "step": 0})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the collectives, the numbers of devices, the two moves and all steps."""
        step, last = state["step"], _ring(state).num_steps
        counts = range(LEAST_DEVICES, MOST_DEVICES + 1)
        return [
            Group(_("Collective"), [Choice(("kind",), [(kind, kind) for kind in KINDS])]),
            Group(_("Devices"), [numbers(("num_devices",), counts)]),
            Group(
                _("Step"),
                [
                    Move(("move",), -1, _("← Back"), idle=step == 0),
                    Move(("move",), 1, _("Forward →"), idle=step == last),
                    numbers(("step",), range(last + 1)),
                ],
            ),
        ]

    def settled(self, state: State) -> State:
        """Returns the state after a move, or at the last step where the chosen ring has fewer."""
        chosen = {"kind": state["kind"], "num_devices": state["num_devices"]}
        asked = state["step"] + state.get("move", 0)
        return {**chosen, "step": min(max(asked, 0), _ring(chosen).num_steps)}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the bytes sent, the chunks on all devices, and what was sent and why."""
        moment = _ring(state).after(state["step"])
        image = pieces.images([chunks_drawing(moment)], ring_text.heard(moment))
        return [
            pieces.facts(ring_text.amounts(moment)),
            pieces.panels([pieces.panel(ring_text.title(moment), image, legend(moment))]),
            pieces.spoken("told", join_sentences(ring_text.sentences(moment))),
        ]


def _ring(state: State) -> Ring:
    return Ring(state["kind"], state["num_devices"], WHOLE_BYTES)
