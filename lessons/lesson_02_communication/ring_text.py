"""A ring in words: what is sent in a step and why, and what every device holds afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.pictures.text import devices_text
from course_lib.specs.blocks import block_label
from lessons.lesson_02_communication.ring import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    Holding,
    Message,
    RingMoment,
)

NOT_THERE = "."


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
    if moment.step == 0:
        return [_aim(moment)]
    reducing = moment.ring.phase(moment.step) == REDUCE_SCATTER
    last = [_result(moment)] if moment.step == moment.ring.num_steps else []
    return [*(_reduced(moment) if reducing else _gathered(moment)), *last]


def lines(moment: RingMoment) -> list[str]:
    """Returns the bytes sent, the messages of the last step and the chunks on every device.

    A chunk is shown by the devices whose values it holds, with a dot for each that is missing; what was sent
    on is in brackets.
    """
    messages = [f"  {_message(message)}" for message in moment.messages]
    sent = [_("Sent in this step"), *messages, ""] if messages else []
    return [bytes_text(moment), "", *sent, _("Chunks"), *_table(moment)]


def heard(moment: RingMoment) -> str:
    """Returns the same for those who hear it: the messages, and what each device has and still needs."""
    rows = [
        ", ".join(
            f"{block_label(chunk)} {_sum(holding.sources)}"
            for chunk, holding in enumerate(row)
            if holding.sources and not holding.sent_on
        )
        for row in moment.holdings
    ]
    messages = [_message(message) for message in moment.messages]
    return "\n".join([*messages, *(f"{devices_text([at])}: {row}" for at, row in enumerate(rows))])


def bytes_text(moment: RingMoment) -> str:
    """Returns how much of how many bytes each device has sent, beside the size of the array."""
    sent = _("Bytes sent by each device: {sent}.", sent=sent_text(moment))
    return join_sentences([sent, _("Bytes of the array: {whole}.", whole=f"{moment.ring.whole_bytes:,}")])


def sent_text(moment: RingMoment) -> str:
    """Returns how many bytes each device has sent, and how many it will have sent in the end.

    >>> from lessons.lesson_02_communication.ring import Ring
    >>> sent_text(Ring("all-reduce", 2, whole_bytes=8000).after(1))
    '4,000 of 8,000'
    """
    sent, total = (moment.ring.bytes_sent(step) for step in (moment.step, moment.ring.num_steps))
    return _("{sent} of {total}", sent=f"{sent:,}", total=f"{total:,}")


def share_text(share: Fraction) -> str:
    """Returns a share with three digits after the point, or fewer where these are zeros.

    >>> share_text(Fraction(3, 2)), share_text(Fraction(4, 3)), share_text(Fraction(2))
    ('1.5', '1.333', '2')
    """
    return f"{float(share):.3f}".rstrip("0").rstrip(".")


def slots(moment: RingMoment, chunk: int) -> tuple[int, ...]:
    """Returns the devices whose values a whole chunk holds, in their order."""
    return (chunk,) if moment.ring.kind == ALL_GATHER else tuple(range(moment.ring.num_devices))


def _message(message: Message) -> str:
    chunk = block_label(message.chunk)
    return f"{message.sender} → {message.receiver}  {chunk}  {_sum(message.sources)}"


def _sum(devices: Sequence[int]) -> str:
    return " + ".join(map(str, devices))


def _table(moment: RingMoment) -> list[str]:
    rows = [[_cell(moment, chunk, holding) for chunk, holding in enumerate(row)] for row in moment.holdings]
    width = max(len(cell) for row in rows for cell in row)
    heads = [block_label(chunk) for chunk in range(moment.ring.num_devices)]
    table = [("", heads), *((str(device_id), row) for device_id, row in enumerate(rows))]
    return [f"  {name:>2}  {'  '.join(f'{cell:^{width}}' for cell in row)}".rstrip() for name, row in table]


def _cell(moment: RingMoment, chunk: int, holding: Holding) -> str:
    content = "".join(
        str(device_id) if device_id in holding.sources else NOT_THERE for device_id in slots(moment, chunk)
    )
    return f"({content})" if holding.sent_on else content


def _aim(moment: RingMoment) -> str:
    count = moment.ring.num_devices
    if moment.ring.kind == ALL_GATHER:
        return _(
            "Each device has one chunk of {count}: device 0 has chunk A, and so on. It needs the others too.",
            count=count,
        )
    if moment.ring.kind == REDUCE_SCATTER:
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


def _reduced(moment: RingMoment) -> list[str]:
    count = moment.ring.round(moment.step) + 1
    sent = _(
        "Reduce-scatter, step {round} of {rounds}: each device sends one chunk to the next device, which adds"
        " its own values. Device {sender} sends chunk {chunk} to device {receiver}.",
        **_example(moment),
    )
    if count == moment.ring.num_devices:
        return [sent, _("Now each device has the whole sum of one chunk: device 0 of chunk A, and so on.")]
    partly = ngettext(
        "The chunks that moved now hold the sum over {count} device. They go on in the next step.",
        "The chunks that moved now hold the sum over {count} devices. They go on in the next step.",
        count,
    )
    return [sent, partly]


def _gathered(moment: RingMoment) -> list[str]:
    count, of = moment.ring.round(moment.step) + 1, moment.ring.num_devices
    sent = _(
        "All-gather, step {round} of {rounds}: each device sends one whole chunk to the next device, which"
        " keeps a copy. Device {sender} sends chunk {chunk} to device {receiver}.",
        **_example(moment),
    )
    if count == of:
        return [sent, _("Now each device has all chunks.")]
    partly = _(
        "Now each device has {count} chunks of {all}. Next it sends on the one that just came.",
        count=count,
        all=of,
    )
    return [sent, partly]


def _example(moment: RingMoment) -> dict[str, object]:
    message = moment.messages[0]
    return {
        "round": moment.ring.round(moment.step),
        "rounds": moment.ring.num_rounds,
        "sender": message.sender,
        "chunk": block_label(message.chunk),
        "receiver": message.receiver,
    }


def _result(moment: RingMoment) -> str:
    count, share = moment.ring.num_devices, moment.ring.share_sent(moment.step)
    values = {"count": count, "share": f"{'=' if 1000 % share.denominator == 0 else '≈'} {share_text(share)}"}
    if moment.ring.kind != ALL_REDUCE:
        return _("Each device sent ({count} − 1) / {count} {share} of the array.", **values)
    sent = _("Each device sent 2 ({count} − 1) / {count} {share} times the array.", **values)
    naive = ngettext(
        "To send its whole array to {count} other device would have cost {count} times the array.",
        "To send its whole array to {count} other devices would have cost {count} times the array.",
        count - 1,
    )
    return join_sentences([sent, naive])
