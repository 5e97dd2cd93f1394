"""Exercises 02-naive and 02-ring: an all-reduce written for one device that sends and receives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.answers import answered, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from lessons.lesson_02_communication import all_reduces as attempts
from lessons.lesson_02_communication.checks_sent import too_many_bytes, too_many_numbers
from lessons.lesson_02_communication.messages import Array, Exchange, OnDevice, run_on_each

_TRACED = 4  # devices, and numbers: one a chunk; the hints name it
_BASE = 100  # no sum counts a value so often


@exercise(
    "02-naive",
    right=attempts.naive,
    also=[attempts.ring, attempts.over_device_0],
    wrong=[
        (attempts.only_device_0, "Every device needs the sum"),
        (attempts.neighbours_only, "are missing"),
        (attempts.own_twice, "more than once"),
        (attempts.mean, "mean"),
        (attempts.without_own, "are missing"),
        (attempts.to_itself, "cannot send to 0"),
        (attempts.receives_too_often, "none will come"),
        (attempts.nothing_sent, "sends anything"),
        (attempts.sends_twice, "once to each other device would be"),
        (attempts.returns_nothing, "return"),
        (7, "function"),
    ],
)
def naive(answer: OnDevice) -> str | None:
    """An all-reduce in which every device sends all that it has to every other one."""
    exchanges: list[tuple[list[Array], Exchange]] = []
    hint = _hint(answer, ring=False, exchanges=exchanges)
    return hint or next((told for each in exchanges if (told := too_many_numbers(*each))), None)


@exercise(
    "02-ring",
    right=attempts.ring,
    also=[attempts.ring_from_own_chunk, attempts.ring_in_place],
    wrong=[
        (attempts.one_round_short, "sends there: 5"),
        (attempts.copies_one_round_short, "sends there: 5"),
        (attempts.wrong_chunk, "missing: those of device 1, device 2, device 3"),
        (attempts.chunk_before, "different places in one sum"),
        (attempts.keeps_adding, "more than once"),
        (attempts.whole_arrays, "sends whole arrays"),
        (attempts.in_float64, "no longer float32"),
        (attempts.copies_in_float64, "no longer float32"),
        (attempts.one_round_too_many, "are enough"),
        (attempts.copies_one_round_too_many, "are enough"),
        (attempts.not_joined, "np.concatenate"),
        (attempts.down_the_line, "work is not shared"),
        (attempts.equal_chunks_only, "not cut into equal chunks"),
        (attempts.chunks_out_of_place, "in the place of others"),
        (attempts.reduce_scatter_only, "one chunk only"),
        (attempts.naive, "cannot send to"),
        (attempts.mean_by_ring, "mean"),
        (attempts.receives_too_often_in_ring, "none will come"),
        (attempts.returns_nothing, "return"),
        ([1, 2], "function"),
    ],
)
def ring(answer: OnDevice) -> str | None:
    """An all-reduce of chunks that go round a ring."""
    exchanges: list[tuple[list[Array], Exchange]] = []
    hint = _hint(answer, ring=True, exchanges=exchanges)
    return hint or next((told for each in exchanges if (told := too_many_bytes(*each))), None)


def _hint(
    answer: OnDevice, *, ring: bool, exchanges: list[tuple[list[Array], Exchange]] | None = None
) -> str | None:
    """Returns None where all devices end with the sum, or a hint that names what is missing."""

    def run(function: Callable[..., Any], parts: list[Array]) -> dict[str, Any]:
        exchange = run_on_each(function, parts, ring=ring)
        if exchanges is not None:
            exchanges.append((parts, exchange))
        return _by_device(exchange.results)

    found = judge(answer, _summed, _cases(), run=run)
    return None if found is None else _diagnosed(answer, ring=ring) or found


def _summed(parts: Sequence[Array]) -> dict[str, Any]:
    return _by_device([np.sum(parts, axis=0)] * len(parts))


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


def _diagnosed(answer: OnDevice, *, ring: bool) -> str | None:
    """Returns what is wrong with a result, from two runs whose numbers say what is in them.

    In one device d brings 100 ** d everywhere: the digits of a sum count the values of each device. In the
    other all bring 100 ** p at place p: the digits count the numbers of each place.
    """
    powers = _BASE ** np.arange(_TRACED)
    by_device = [np.full(_TRACED, power) for power in powers]
    try:
        runs = [run_on_each(answer, parts, ring=ring) for parts in (by_device, [powers] * _TRACED)]
        if any(result is None for run in runs for result in run.results):
            return _("Your function gives nothing. Does it end with `return`?")
        devices, origins = (
            [np.asarray(plain(answered(each)), float) for each in run.results] for run in runs
        )
    except Exception:
        return None
    told = _told(devices, origins, sent=sum(runs[0].arrays_sent))
    steps = _TRACED - 1
    if told and ring and max(runs[0].arrays_sent) < 2 * steps:
        too_few = _(
            "Arrays that each device sends there: {sent}. Adding takes three steps, and copying as many.",
            sent=max(runs[0].arrays_sent),
        )
        return f"{told} {too_few}"
    return told


def _told(devices: list[Array], origins: list[Array], *, sent: int) -> str | None:
    """Returns what traced results say."""
    if not sent:
        return _("No device sends anything: `device.send(to, values)` does.")
    if all(each.shape == (1,) for each in devices):
        return _("Each device returns one chunk only. Collect the finished chunks of the others too.")
    if all(each.shape == (_TRACED, 1) for each in devices):
        return _("Each device returns its chunks one by one. Join them with `np.concatenate`.")
    if any(each.shape != (_TRACED,) for each in (*devices, *origins)):
        return None
    whole = sum(_BASE**at for at in range(_TRACED))
    if all(np.allclose(each, whole / _TRACED) for each in devices):
        return _("This is the mean of the devices. An all-reduce adds.")
    right = [bool(np.all(each == whole)) for each in devices]
    if right == [True, *[False] * (_TRACED - 1)]:
        return _("Device 0 has the sum, the others have not. Every device needs the sum.")
    for reason, traced in ((_mixed, origins), (_miscounted, devices)):
        for device_id, place in itertools.product(range(_TRACED), repeat=2):
            counts = _digits(traced[device_id][place])
            told = reason(counts, device_id, place) if counts else None
            if told:
                return told
    return None


def _mixed(counts: list[int], device_id: int, place: int) -> str | None:
    """Returns what to say of a sum that holds numbers of other places."""
    others = [times for at, times in enumerate(counts) if at != place and times]
    if not others:
        return None
    if not counts[place] and len(others) == 1:
        return _("Some sums stand in the place of others: put each chunk where it was cut out.")
    return _(
        "Of four devices, device {device_id} ends with numbers of different places in one sum, at place"
        " {place}. Add what comes to the chunk that the *previous* device sends in this step.",
        device_id=device_id,
        place=place,
    )


def _miscounted(counts: list[int], device_id: int, place: int) -> str | None:
    """Returns what to say of a sum in which values are missing or counted more than once."""
    where = {"device_id": device_id, "place": place}
    if 0 in counts:
        return _(
            "Of four devices, device {device_id} ends with a sum at place {place} in which values are"
            " missing: those of {names}.",
            **where,
            names=_named(at for at, times in enumerate(counts) if times == 0),
        )
    if max(counts) > 1:
        return _(
            "Of four devices, device {device_id} ends with a sum at place {place} in which values are"
            " counted more than once: those of {names}.",
            **where,
            names=_named(at for at, times in enumerate(counts) if times > 1),
        )
    return None


def _digits(number: float) -> list[int] | None:
    """Returns how often each power is in a sum; None if it is no sum of them."""
    if number != int(number) or not 0 <= number < _BASE**_TRACED:
        return None
    return [int(number) // _BASE**at % _BASE for at in range(_TRACED)]


def _named(devices: Iterable[int]) -> str:
    return _(", ").join(_("device {device_id}", device_id=each) for each in devices)
