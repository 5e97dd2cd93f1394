"""The ring stepper: choose a collective and a number of devices, and step through it, forward and back."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _, join_sentences, later, ngettext
from course_lib.pictures.shapes import Node
from course_lib.pictures.text import devices_text
from course_lib.specs.sharding import block_label
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, Move, State, numbers
from lessons.layouts.all_reduce.ring import (
    ALL_GATHER,
    ALL_REDUCE,
    KINDS,
    LEAST_DEVICES,
    MOST_DEVICES,
    REDUCE_SCATTER,
    Ring,
    RingMoment,
)
from lessons.layouts.all_reduce.ring_picture import chunks_drawing, legend

WHOLE_BYTES = 4 * 840  # 840 numbers of float32: they make equal chunks for 2 to 8 devices


class RingExplorer(Explorer):
    """Lets the reader step through a collective in a ring, chunk by chunk, forward and back.

    Args:
        num_devices: the number of devices shown first, from 2 to 8.

    Raises:
        CourseError: another number of devices.
    """

    name = "ring"
    title = later("Ring stepper")

    def __init__(self, num_devices: int = 4) -> None:
        Ring(ALL_REDUCE, num_devices, WHOLE_BYTES)  # refuses what is no ring
        super().__init__({"kind": ALL_REDUCE, "num_devices": num_devices, "step": 0})

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
        image = pieces.images([chunks_drawing(moment)], _heard(moment))
        return [
            pieces.facts(_amounts(moment)),
            pieces.panels([pieces.panel(_title(moment), image, legend(moment))]),
            pieces.spoken("told", join_sentences(_sentences(moment))),
        ]


def _ring(state: State) -> Ring:
    return Ring(state["kind"], state["num_devices"], WHOLE_BYTES)


def _title(moment: RingMoment) -> str:
    """Returns which collective it is, of how many devices, and after which step."""
    return ngettext(
        "Ring {kind} of {count} device: step {step} of {last}",
        "Ring {kind} of {count} devices: step {step} of {last}",
        moment.ring.num_devices,
        kind=moment.ring.kind,
        step=moment.step,
        last=moment.ring.num_steps,
    )


def _sentences(moment: RingMoment) -> list[str]:
    """Returns what was sent in the last step, why, and what came of it; before the first what is wanted."""
    ring, step = moment.ring, moment.step
    if step == 0:
        return [_aim(ring)]
    message = moment.messages[0]
    example = {
        "round": ring.round(step),
        "rounds": ring.num_rounds,
        "sender": message.sender,
        "chunk": block_label(message.chunk),
        "receiver": message.receiver,
    }
    if ring.phase(step) == REDUCE_SCATTER:
        sent = _(
            "Reduce-scatter, step {round} of {rounds}: each device sends one chunk to the next device, which"
            " adds its own values. Device {sender} sends chunk {chunk} to device {receiver}.",
            **example,
        )
    else:
        sent = _(
            "All-gather, step {round} of {rounds}: each device sends one whole chunk to the next device,"
            " which keeps a copy. Device {sender} sends chunk {chunk} to device {receiver}.",
            **example,
        )
    return [sent, _outcome(ring, step)]


def _heard(moment: RingMoment) -> str:
    """Returns the messages, and what each device has and still needs: chunks, and whose values they hold."""
    messages = [
        f"{message.sender} → {message.receiver}: {block_label(message.chunk)} {_sum(message.sources)}"
        for message in moment.messages
    ]
    rows = [
        ", ".join(
            f"{block_label(chunk)} {_sum(holding.sources)}"
            for chunk, holding in enumerate(row)
            if holding.sources and not holding.sent_on
        )
        for row in moment.holdings
    ]
    return "\n".join([*messages, *(f"{devices_text([at])}: {row}" for at, row in enumerate(rows))])


def _amounts(moment: RingMoment) -> dict[str, str]:
    """Returns the size of the array, and what each device has sent and will have sent of it, by name.

    >>> list(_amounts(Ring("all-reduce", 6, whole_bytes=600).after(2)).values())
    ['600', '200 of 1,000', '0.333 of 1.667']
    """
    ring = moment.ring
    steps = moment.step, ring.num_steps
    sent, total = (f"{ring.bytes_sent(step):,}" for step in steps)
    share, whole = (f"{round(step / ring.num_devices, 3):g}" for step in steps)
    return {
        _("Bytes of the array"): f"{ring.whole_bytes:,}",
        _("Bytes sent by each device"): _("{sent} of {total}", sent=sent, total=total),
        _("Times the array"): _("{sent} of {total}", sent=share, total=whole),
    }


def _sum(devices: tuple[int, ...]) -> str:
    return " + ".join(map(str, devices))


def _aim(ring: Ring) -> str:
    count = ring.num_devices
    if ring.kind == ALL_GATHER:
        return _(
            "Each device has one chunk of {count}: device 0 has chunk A, and so on. It needs the others too.",
            count=count,
        )
    if ring.kind == REDUCE_SCATTER:
        return _(
            "Each device has values of its own for all {count} chunks. It needs one chunk of the sum over all"
            " devices: device 0 needs chunk A, and so on.",
            count=count,
        )
    return _(
        "Each device has values of its own for all {count} chunks. It needs the sum over all devices, every"
        " chunk of it.",
        count=count,
    )


def _outcome(ring: Ring, step: int) -> str:
    """Returns what the devices have after a step."""
    count, reducing = ring.round(step) + 1, ring.phase(step) == REDUCE_SCATTER
    if count == ring.num_devices:
        if reducing:
            return _("Now each device has the whole sum of one chunk: device 0 of chunk A, and so on.")
        return _("Now each device has all chunks.")
    if reducing:
        return ngettext(
            "The chunks that moved now hold the sum over {count} device. They go on in the next step.",
            "The chunks that moved now hold the sum over {count} devices. They go on in the next step.",
            count,
        )
    return _(
        "Now each device has {count} chunks of {all}. Next it sends on the one that just came.",
        count=count,
        all=ring.num_devices,
    )
