"""Exercises 02-naive and 02-ring: an all-reduce written for one device that sends and receives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.exercises.answers import answered, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from lessons.lesson_02_communication import all_reduces
from lessons.lesson_02_communication.messages import Array, Exchange, OnDevice, run_on_each

_SECONDS = 2.0  # in which a group of devices has long ended, also on a busy machine
_TRACED = 4  # devices, and numbers: one a chunk; the hints name it
_BASE = 100  # no sum counts a value so often


@exercise("02-naive", right=all_reduces.naive)
def naive(answer: OnDevice) -> str | None:
    """An all-reduce in which every device sends all that it has to every other one."""
    return _hint(answer, ring=False)


@exercise("02-ring", right=all_reduces.ring)
def ring(answer: OnDevice) -> str | None:
    """An all-reduce of chunks that go round a ring."""
    return _hint(answer, ring=True)


def _hint(answer: OnDevice, *, ring: bool) -> str | None:
    """Returns None where all devices end with the sum and send no more than they must, or else a hint."""
    exchanges: list[tuple[list[Array], Exchange]] = []

    def run(function: OnDevice, parts: list[Array]) -> dict[str, Any]:
        exchange = run_on_each(function, parts, ring=ring, seconds=_SECONDS)
        exchanges.append((parts, exchange))
        return _by_device(exchange.results)

    wrong = judge(answer, lambda parts: _by_device([sum(parts)] * len(parts)), _cases(), run=run)
    if wrong:
        return _traced(answer, ring=ring) or wrong
    return next(filter(None, (_too_much(*both, ring=ring) for both in exchanges)), None)


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
    return list(random.integers(1, 10, size=(count, length)).astype(np.float32))


def _traced(answer: OnDevice, *, ring: bool) -> str | None:
    """Returns what is wrong with a result, from a run whose numbers say what is in them.

    Device d brings 100 ** d everywhere: the digits of a sum count the values of each device.
    """
    try:
        parts = [np.full(_TRACED, _BASE**at) for at in range(_TRACED)]
        run = run_on_each(answer, parts, ring=ring, seconds=_SECONDS)
        if any(result is None for result in run.results):
            return _("Your function gives nothing. Does it end with `return`?")
        results = [np.asarray(plain(answered(result)), float) for result in run.results]
    except Exception:
        return None
    if not any(run.sent):
        return _("No device sends anything: `device.send(to, values)` does.")
    if all(result.shape == (1,) for result in results):
        return _("Each device returns one chunk only. Collect the finished chunks of the others too.")
    if any(result.shape != (_TRACED,) for result in results):
        return None
    places = itertools.product(range(_TRACED), repeat=2)
    return next(filter(None, (_miscounted(results[at][place], at, place) for at, place in places)), None)


def _miscounted(total: float, device_id: int, place: int) -> str | None:
    """Returns what to say of a sum in which values are missing or counted more than once."""
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


def _too_much(parts: list[Array], exchange: Exchange, *, ring: bool) -> str | None:
    """Returns what the busiest device sends beyond what it must; None if it sends no more.

    In each of the 2 (n - 1) steps of a ring a device sends one chunk, and no chunk has more than n-th of the
    numbers, rounded up. There bytes count, elsewhere numbers.
    """
    count, length = len(parts), parts[0].size
    if ring:
        needed = 2 * (count - 1) * -(-length // count)
        sent = max(exchange.bytes_sent) // parts[0].itemsize
        how = _("one chunk in each of the 2·({count} - 1) steps", count=count)
    else:
        needed = (count - 1) * length
        sent = max(sum(array.size for array in arrays) for arrays in exchange.sent)
        how = _("its vector once to each other device")
    if sent <= needed:
        return None
    return _(
        "The sums are right, but in a group of {count}, with vectors of {length} float32 numbers, a device"
        " sends the bytes of {sent}. {needed} are enough: {how}.",
        count=count,
        length=length,
        sent=sent,
        needed=needed,
        how=how,
    )
