"""A ring in words: what is sent in a step and why, and what every device holds afterwards."""

from __future__ import annotations

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.pictures.text import devices_text
from course_lib.specs.blocks import block_label
from lessons.layouts.communication.ring import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Ring, RingMoment


def title(moment: RingMoment) -> str:
    """Returns which collective it is, of how many devices, and after which step."""
    return ngettext(
        "Ring {kind} of {count} device: step {step} of {last}",
        "Ring {kind} of {count} devices: step {step} of {last}",
        moment.ring.num_devices,
        kind=moment.ring.kind,
        step=moment.step,
        last=moment.ring.num_steps,
    )


def sentences(moment: RingMoment) -> list[str]:
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
    return [sent, _outcome(ring, step), *([_result(ring)] if step == ring.num_steps else [])]


def heard(moment: RingMoment) -> str:
    """Returns the picture in words: the messages of the last step, and what each device has and needs."""
    rows = [
        ", ".join(
            f"{block_label(chunk)} {_sum(holding.sources)}"
            for chunk, holding in enumerate(row)
            if holding.sources and not holding.sent_on
        )
        for row in moment.holdings
    ]
    return "\n".join([*_messages(moment), *(f"{devices_text([at])}: {row}" for at, row in enumerate(rows))])


def amounts(moment: RingMoment) -> dict[str, str]:
    """Returns the size of the array, and how many bytes each device has sent and will have sent, by name."""
    return {
        _("Bytes of the array"): f"{moment.ring.whole_bytes:,}",
        _("Bytes sent by each device"): _sent(moment),
    }


def share_text(ring: Ring, step: int) -> str:
    """Returns how much each device has sent after `step` steps, as a share of the array.

    >>> ring = Ring("all-reduce", 6, whole_bytes=600)
    >>> share_text(ring, 2), share_text(ring, 9), share_text(ring, 6)
    ('0.333', '1.5', '1')
    """
    return f"{round(step / ring.num_devices, 3):g}"


def _sent(moment: RingMoment) -> str:
    sent, total = (moment.ring.bytes_sent(step) for step in (moment.step, moment.ring.num_steps))
    return _("{sent} of {total}", sent=f"{sent:,}", total=f"{total:,}")


def _messages(moment: RingMoment) -> list[str]:
    return [
        f"{message.sender} → {message.receiver}  {block_label(message.chunk)}  {_sum(message.sources)}"
        for message in moment.messages
    ]


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


def _result(ring: Ring) -> str:
    count, last = ring.num_devices, ring.num_steps
    is_exact = 1000 * last % count == 0
    values = {"count": count, "share": f"{'=' if is_exact else '≈'} {share_text(ring, last)}"}
    if ring.kind != ALL_REDUCE:
        return _("Each device sent ({count} − 1) / {count} {share} of the array.", **values)
    sent = _("Each device sent 2 ({count} − 1) / {count} {share} times the array.", **values)
    naive = ngettext(
        "To send its whole array to {count} other device would have cost {count} times the array.",
        "To send its whole array to {count} other devices would have cost {count} times the array.",
        count - 1,
    )
    return join_sentences([sent, naive])
