"""Whether an all-reduce that adds rightly sends more than it has to, and what to say of it."""

from __future__ import annotations

import numpy as np

from course_lib.i18n import _
from lessons.lesson_02_communication.messages import Array, Exchange


def too_many_numbers(parts: list[Array], exchange: Exchange) -> str | None:
    """Returns what to say where a device sends more than its vector to every other; None if none does."""
    needed, sent = (len(parts) - 1) * parts[0].size, max(exchange.numbers_sent)
    if sent <= needed:
        return None
    return _(
        "The sums are right, but in a group of {count}, with vectors of length {length}, a device sends"
        " {sent} numbers. Its vector once to each other device would be {needed}.",
        count=len(parts),
        length=parts[0].size,
        sent=sent,
        needed=needed,
    )


def too_many_bytes(parts: list[Array], exchange: Exchange) -> str | None:
    """Returns what a device sends beyond its chunks; None if the busiest one sends no more than they are.

    In each of the 2 (n - 1) steps a device sends one chunk, and no chunk has more than n-th of the numbers,
    rounded up.
    """
    count, length, element_bytes = len(parts), parts[0].size, parts[0].itemsize
    steps = 2 * (count - 1)
    most = steps * -(-length // count)
    if max(exchange.bytes_sent) <= most * element_bytes:
        return None
    if max(exchange.numbers_sent) <= most:
        return _("The sums and the chunks are right, but the numbers that are sent are no longer float32.")
    if min(exchange.arrays_sent) == steps:
        return _(
            "The sums are right and the steps too, but the chunks are too large."
            " Are they as equal in length as can be?"
        )
    if min(exchange.numbers_sent) >= (count - 1) * length and max(exchange.arrays_sent) < steps:
        return _("The sums are right, but each device sends whole arrays, as many bytes as without a ring.")
    if min(exchange.arrays_sent) > steps:
        return _(
            "The sums are right, but in a group of {count} each device sends {sent} times, and {steps} are"
            " enough: {half} to add and {half} to copy.",
            count=count,
            sent=min(exchange.arrays_sent),
            steps=steps,
            half=count - 1,
        )
    device_id = int(np.argmax(exchange.numbers_sent))
    return _(
        "The sums are right, but the work is not shared: in a group of {count}, with {length} float32 numbers"
        " each, the bytes that device {device_id} sends are {sent}. In each of the 2·({count} - 1) steps a"
        " device sends one chunk.",
        count=count,
        length=length,
        device_id=device_id,
        sent=exchange.bytes_sent[device_id],
    )
