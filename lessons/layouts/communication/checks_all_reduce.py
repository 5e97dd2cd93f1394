"""Exercise communication-ring: an all-reduce written for one device that sends to the next one only."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.exercises.answers import answered, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from lessons.layouts.communication.messages import Array, Device, Exchange, OnDevice, run_on_each

_SECONDS = 2.0  # in which a group of devices has long ended, also on a busy machine
_TRACED = 4  # devices, and numbers: one a chunk; the hints name it
_BASE = 100  # no sum counts a value so often
_UNIT = 1.5  # of what they bring: whoever drops fractions ends with no multiple of it


def ring(mine: Array, device: Device) -> Array:
    """Lets sums of chunks go round once, and the finished ones once more."""
    count, chunks = device.count, np.array_split(mine, device.count)
    for step in range(2 * (count - 1)):
        device.send(device.next, chunks[(device.id - 1 - step) % count])
        at, received = (device.id - 2 - step) % count, device.receive(device.previous)
        chunks[at] = chunks[at] + received if step < count - 1 else received
    return np.concatenate(chunks)


@exercise("communication-ring", right=ring)
def ring_all_reduce(answer: OnDevice) -> str | None:
    """An all-reduce of chunks that go round: all end with the sum, and send no more than they must."""
    exchanges: list[tuple[list[Array], Exchange]] = []

    def run(function: OnDevice, parts: list[Array]) -> dict[str, Any]:
        exchange = run_on_each(function, parts, ring=True, seconds=_SECONDS)
        exchanges.append((parts, exchange))
        return _by_device(exchange.results)

    wrong = judge(answer, lambda parts: _by_device([sum(parts)] * len(parts)), _cases(), run=run, tolerance=0)
    if wrong:
        return _traced(answer) or wrong
    return next(filter(None, (_too_much(*both) for both in exchanges)), None)


def _by_device(results: Sequence[Any]) -> dict[str, Any]:
    return {f"device {at}": result for at, result in enumerate(results)}


def _cases() -> list[Case]:
    """Returns parts for 2 to 8 devices, and some that do not make equal chunks."""
    uneven = _("The array is not cut into equal chunks here. `np.array_split` copes with that.")
    random = np.random.default_rng(1)
    return [
        *(Case((_parts(random, count, length),), uneven) for count, length in ((3, 7), (4, 2), (8, 13))),
        *drawn(_even_parts, count=24),
    ]


def _even_parts(random: np.random.Generator) -> tuple[list[Array]]:
    count = int(random.integers(2, 9))
    return (_parts(random, count, count * int(random.integers(1, 4))),)


def _parts(random: np.random.Generator, count: int, length: int) -> list[Array]:
    halves = random.integers(1, 20_000, size=(count, length))  # too large for float16, exact in float32
    return list(halves.astype(np.float32) / 2)


def _traced(answer: OnDevice) -> str | None:
    """Returns what is wrong with a result, from a run whose numbers say what is in them.

    Device d brings 1.5 * 100 ** d everywhere: the digits of a sum / 1.5 count the values of each device.
    """
    try:
        parts = [np.full(_TRACED, _UNIT * _BASE**at) for at in range(_TRACED)]
        run = run_on_each(answer, parts, ring=True, seconds=_SECONDS)
        if any(result is None for result in run.results):
            return _("Your function gives nothing. Does it end with `return`?")
        results = [np.asarray(plain(answered(result)), float) / _UNIT for result in run.results]
    except Exception:
        return None
    if not any(run.bytes_sent):
        return _("No device sends anything: `device.send(to, values)` does.")
    if all(result.shape == (1,) for result in results):
        return _("Each device returns one chunk only. Collect the finished chunks of the others too.")
    if all(result.shape == (_TRACED, 1) for result in results):
        return _("Your function returns the chunks one by one. Join them into one array.")
    if any(result.shape != (_TRACED,) for result in results):
        return None
    places = itertools.product(range(_TRACED), repeat=2)
    return next(filter(None, (_miscounted(results[at][place], at, place) for at, place in places)), None)


def _miscounted(total: float, device_id: int, place: int) -> str | None:
    """Returns what to say of a sum in which values are missing or counted more than once, or of no sum."""
    if not float(total).is_integer():
        return _(
            "Of four devices, device {device_id} ends at place {place} with a number that is no sum of the"
            " values. Return the sums as they are.",
            device_id=device_id,
            place=place,
        )
    counts = [int(total) // _BASE**at % _BASE for at in range(_TRACED)]
    missing = [at for at, times in enumerate(counts) if times == 0]
    repeated = [at for at, times in enumerate(counts) if times > 1]
    names = _(", ").join(_("device {device_id}", device_id=at) for at in missing or repeated)
    values = {"device_id": device_id, "place": place, "names": names}
    if missing:
        return _(
            "Of four devices, device {device_id} ends with a sum at place {place} in which values are"
            " missing: those of {names}.",
            **values,
        )
    if repeated:
        return _(
            "Of four devices, device {device_id} ends with a sum at place {place} in which values are"
            " counted more than once: those of {names}.",
            **values,
        )
    return None


def _too_much(parts: list[Array], exchange: Exchange) -> str | None:
    """Returns what the busiest device sends beyond what it must; None if it sends no more.

    In each of the 2 (n - 1) steps a device sends one chunk, and no chunk has more than n-th of the numbers,
    rounded up. Bytes count, so that no wider number type passes.
    """
    count, length = len(parts), parts[0].size
    needed = 2 * (count - 1) * -(-length // count)
    sent = max(exchange.bytes_sent) // parts[0].itemsize
    if sent <= needed:
        return None
    return _(
        "The sums are right, but in a group of {count}, with arrays of {length} float32 numbers, a device"
        " sends the bytes of {sent}. {needed} are enough: one chunk in each of the 2·({count} - 1) steps.",
        count=count,
        length=length,
        sent=sent,
        needed=needed,
    )
