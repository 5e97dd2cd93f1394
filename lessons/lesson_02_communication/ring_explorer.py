"""The ring stepper: choose a collective and a number of devices, and step through it, forward and back."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _, join_sentences
from course_lib.pictures import arranging
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, Move, State
from lessons.lesson_02_communication import ring_text
from lessons.lesson_02_communication.ring import (
    ALL_REDUCE,
    KINDS,
    LEAST_DEVICES,
    MOST_DEVICES,
    Ring,
    RingMoment,
)
from lessons.lesson_02_communication.ring_picture import chunks_drawing, legend, sent_drawing

WHOLE_BYTES = 4 * 840  # 840 numbers of float32: they make equal chunks for 2 to 8 devices


class RingExplorer(Explorer):
    """Lets the reader step through a collective in a ring, chunk by chunk, forward and back.

    The properties `ring` and `moment` follow the reader's clicks.

    Args:
        kind: the collective shown first: `"all-reduce"`, `"reduce-scatter"` or `"all-gather"`.
        num_devices: the number of devices shown first, from 2 to 8.
        step: how many steps have been made at first.

    Raises:
        CourseError: another collective, another number of devices, or no such step.
    """

    name = "ring"

    def __init__(self, kind: str = ALL_REDUCE, num_devices: int = 4, step: int = 0) -> None:
        moment = Ring(kind, num_devices, WHOLE_BYTES).after(step)
        super().__init__({"kind": kind, "num_devices": num_devices, "step": moment.step})

    @property
    def ring(self) -> Ring:
        """The collective and the devices that the reader chose."""
        return self.moment.ring

    @property
    def moment(self) -> RingMoment:
        """The ring after the step at which the reader is."""
        return _moment(self.state)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Ring stepper")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the collectives, the numbers of devices, the two moves and all steps."""
        del page
        step, last = state["step"], _ring(state).num_steps
        counts = range(LEAST_DEVICES, MOST_DEVICES + 1)
        return [
            Group(_("Collective"), [Choice(("kind",), [(kind, kind) for kind in KINDS])]),
            Group(_("Devices"), [Choice(("num_devices",), [(count, str(count)) for count in counts])]),
            Group(
                _("Step"),
                [
                    Move(("move",), -1, _("← Back"), idle=step == 0),
                    Move(("move",), 1, _("Forward →"), idle=step == last),
                    Choice(("step",), [(at, str(at)) for at in range(last + 1)]),
                ],
            ),
        ]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state after a move, or at the last step where the chosen ring has fewer."""
        del page
        chosen = {"kind": state["kind"], "num_devices": state["num_devices"]}
        asked = state["step"] + state.get("move", 0)
        return {**chosen, "step": min(max(asked, 0), _ring(chosen).num_steps)}

    def figure(self) -> Figure:
        """Returns the picture of the step at which the reader is."""
        return figure(self.moment)

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the bytes sent, the chunks on all devices, and what was sent and why."""
        del page
        moment = _moment(state)
        drawing = arranging.stacked([chunks_drawing(moment), sent_drawing(moment)], 12)
        image = pieces.images([drawing], ring_text.heard(moment))
        return [
            _facts(moment),
            pieces.panels([pieces.panel(ring_text.title(moment), image, legend(moment))]),
            pieces.spoken("told", join_sentences(ring_text.sentences(moment))),
        ]


def _facts(moment: RingMoment) -> Node:
    ring = moment.ring
    share, most = (ring_text.share_text(ring.share_sent(step)) for step in (moment.step, ring.num_steps))
    return pieces.facts(
        {
            _("Bytes of the array"): f"{ring.whole_bytes:,}",
            _("Bytes sent by each device"): ring_text.sent_text(moment),
            _("Times the array"): _("{sent} of {total}", sent=share, total=most),
        }
    )


def _moment(state: State) -> RingMoment:
    return _ring(state).after(state["step"])


def _ring(state: State) -> Ring:
    return Ring(state["kind"], state["num_devices"], WHOLE_BYTES)
