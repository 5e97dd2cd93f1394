"""Explorers that step through a training step, event by event, forward and back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.communication_text import bytes_text, exchange
from course_lib.pictures.lanes import event_lines, event_sentence, lanes_drawings, phase_names
from course_lib.pictures.shapes import Node, node
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.step import Event
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Group, Move, State


class SteppingExplorer(Explorer):
    """Shows the lanes of a training step, of which one event is lit: `state["event"]`.

    A subclass gives `mesh` and `events`, and has `moves` among its controls.
    """

    @abstractmethod
    def mesh(self, state: State) -> MeshSpec:
        """Returns the devices that were chosen."""

    @abstractmethod
    def events(self, state: State) -> list[Event]:
        """Returns what happens in the step.

        Raises:
            CourseError: the choice is illegal.
        """

    def moves(self, state: State) -> Group:
        """Returns the buttons that step back and forward."""
        event, last = state["event"], self._last(state)
        back = Move(("move",), -1, _("← Back"), idle=event == 0)
        return Group(_("Training step"), [back, Move(("move",), 1, _("Forward →"), idle=event == last)])

    def settled(self, state: State) -> State:
        """Returns the state after a move, or at the last event where the chosen step has fewer."""
        kept = {name: value for name, value in state.items() if name != "move"}
        event = state["event"] + state.get("move", 0)
        return {**kept, "event": max(0, min(event, self._last(kept)))}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the lit event in numbers, what happens and why, and the lanes."""
        try:
            events = self.events(state)
        except CourseError as error:
            return [pieces.refusal(error)]
        now = state["event"]
        event, mesh = events[now], self.mesh(state)
        title = _(
            "{phase}, {number} of {last}: {tensor}",
            phase=phase_names()[event.phase],
            number=now + 1,
            last=len(events),
            tensor=event.tensor,
        )
        return [
            pieces.facts(_amounts(events, now)),
            pieces.spoken("told", event_sentence(event)),
            pieces.panels([lanes_panel(title, mesh, events, now)]),
        ]

    def _last(self, state: State) -> int:
        try:
            return len(self.events(state)) - 1
        except CourseError:
            return 0


def lanes_panel(
    title: str,
    mesh: MeshSpec,
    events: Sequence[Event],
    now: int | None = None,
    *,
    devices: Sequence[int] = (),
    heads: Sequence[Sequence[str]] = (),
    lines: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Node:
    """Returns the lanes under a title, and how to read them.

    Without an event that is lit now, the reader lights one exchange after another with a slider. `heads` and
    `lines` stand over the lanes and describe them, where that is not what the events say of themselves.
    """
    legend = [
        _("A row is a device, with its position on the mesh. A band joins devices that exchange."),
        _("In a column equal letters are equal data. Stripes mark partial sums."),
        *notes,
    ]
    told = "\n".join(lines or event_lines(events, len(events) if now is None else now))
    image = pieces.images(lanes_drawings(mesh, events, now, devices, heads), told)
    if now is None:
        slider = pieces.moments(_("Light the exchanges one by one"), len(events))
        return pieces.panel(title, node("div", *slider, image), legend)
    return pieces.panel(title, image, legend)


def _amounts(events: Sequence[Event], now: int) -> dict[str, str]:
    """Returns the exchange of the lit event, its payload, and what a device has sent and will have sent."""
    collective = events[now].collective
    so_far, whole = (
        [each.collective for each in some if each.collective] for some in (events[: now + 1], events)
    )
    sent, total = (
        bytes_text(sum((each.bytes_sent for each in some), Fraction(0))) for some in (so_far, whole)
    )
    return {
        _("Exchange"): exchange(collective) if collective else _("none"),
        _("Payload in bytes"): f"{collective.payload_bytes:,}" if collective else "0",
        _("Collectives"): _("{sent} of {total}", sent=len(so_far), total=len(whole)),
        _("Bytes sent by each device"): _("{sent} of {total}", sent=sent, total=total),
    }
