"""The exercises of this lesson: an all-reduce of a ring of devices, and the time that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from lessons.layouts.all_reduce.messages import Array, Device, Exchange, OnDevice, run_on_each

_SECONDS = 2.0  # in which a group of devices has long ended, also on a busy machine


def ring(mine: Array, device: Device) -> Array:
    """Lets sums of chunks go round once, and the finished ones once more."""
    count, chunks = device.count, np.array_split(mine, device.count)
    for step in range(2 * (count - 1)):
        device.send(device.next, chunks[(device.id - 1 - step) % count])
        at, received = (device.id - 2 - step) % count, device.receive(device.previous)
        chunks[at] = chunks[at] + received if step < count - 1 else received
    return np.concatenate(chunks)


@exercise("all_reduce-ring", right=ring)
def ring_all_reduce(answer: OnDevice) -> str | None:
    """An all-reduce of chunks that go round: all end with the sum, and no device sends too much or waits.

    Bytes decide, not the lengths of chunks: who leaves the remainder of the division to one chunk sends no
    more in all, and the arrays that are added in practice are so long that it does not count.
    """
    exchanges: list[tuple[list[Array], Exchange]] = []

    def run(function: OnDevice, parts: list[Array]) -> dict[str, Any]:
        exchange = run_on_each(function, parts, ring=True, seconds=_SECONDS)
        exchanges.append((parts, exchange))
        return _by_device(exchange.results)

    wrong = judge(
        answer,
        lambda parts: _by_device([sum(parts)] * len(parts)),
        _cases(),
        run=run,
        tolerance=0,
        misconceptions={
            lambda parts: _by_device([sum(parts) / len(parts)] * len(parts)): _(
                "That is the mean. Return the sum."
            ),
            lambda parts: _by_device([np.array_split(sum(parts), len(parts))] * len(parts)): _(
                "These are the right sums, but still in chunks. Join the chunks to one array."
            ),
        },
        advice=_(
            "Try four devices that hold 1, 2, 3, 4, and 100, 10,000 and 1,000,000 times that. The sums are"
            " 1010101, 2020202, 3030303 and 4040404: two digits for each device. If they are 00, its value is"
            " missing. Twice as much was added twice, and other digits belong to another chunk."
        ),
    )
    return wrong or next(filter(None, (_too_much(*both) for both in exchanges)), None)


def _by_device(results: Sequence[Any]) -> dict[str, Any]:
    return {f"device {at}": result for at, result in enumerate(results)}


def _cases() -> list[Case]:
    """Returns parts for up to 8 devices, some that do not make equal chunks, and first that of the advice."""
    uneven = _("The array is not cut into equal chunks here. `np.array_split` copes with that.")
    random = np.random.default_rng(1)
    return [
        Case(([np.float32(100**at) * np.arange(1, 5, dtype=np.float32) for at in range(4)],)),
        *(Case((_parts(random, count, length),), uneven) for count, length in ((3, 7), (4, 2), (8, 13))),
        *drawn(_even_parts, count=24),
    ]


def _even_parts(random: np.random.Generator) -> tuple[list[Array]]:
    count = int(random.integers(2, 9))
    return (_parts(random, count, count * int(random.integers(5, 8))),)


def _parts(random: np.random.Generator, count: int, length: int) -> list[Array]:
    halves = random.integers(1, 20_000, size=(count, length))  # too large for float16, exact in float32
    return list(halves.astype(np.float32) / 2)


def _too_much(parts: list[Array], exchange: Exchange) -> str | None:
    """Returns what the busiest device sends, or how long it takes, beyond what must be; None if nothing is.

    In each of the 2 (n - 1) steps a device sends one chunk, and no chunk has more than n-th of the numbers,
    rounded up. Bytes count, so that no wider number type passes. Time counts where chunks are equal.
    """
    count, length = len(parts), parts[0].size
    needed = 2 * (count - 1) * -(-length // count)
    sent, took = (each // parts[0].itemsize for each in (max(exchange.bytes_sent), exchange.time))
    numbers = {"count": count, "length": length, "sent": sent, "took": took, "needed": needed}
    if sent > needed:
        return _(
            "The sums are right, but in a group of {count}, with arrays of {length} float32 numbers, a device"
            " sends the bytes of {sent}. {needed} are enough: one chunk in each of the 2·({count} - 1)"
            " steps. Send nothing else, and only float32: a list of numbers is sent as float64.",
            **numbers,
        )
    if took > needed and length % count == 0:
        return _(
            "The sums are right, and no device sends too much, but devices wait for one another. In a group"
            " of {count}, with arrays of {length} numbers, this takes as long as {took} numbers on one link."
            " {needed} are enough, if every device sends in every step.",
            **numbers,
        )
    return None


def seconds(devices: float, num_bytes: float, bandwidth: float, latency: float) -> float:
    """Has each of the 2 (n - 1) steps wait for a latency and move a chunk."""
    return 2 * (devices - 1) * (latency + num_bytes / devices / bandwidth)


@exercise("all_reduce-seconds", right=seconds)
def ring_seconds(answer: Callable[..., float]) -> str | None:
    """The time of a ring from steps, latency and bandwidth."""
    count_steps = _("How many steps has each half? Count them in the ring of four devices above.")
    return judge(
        answer,
        seconds,
        [*drawn(_figures, count=20), Case((8, 10**6, 25e9, 14e-6), _("Real times are short: don't round."))],
        misconceptions={
            lambda *given: seconds(*given) / 2: _(
                "That is one half of the ring. The all-gather takes as many steps again."
            ),
            lambda n, size, rate, wait: 2 * n * (wait + size / n / rate): count_steps,
            lambda n, size, rate, wait: (2 * n - 1) * (wait + size / n / rate): count_steps,
            lambda n, size, rate, wait: n * (wait + size / n / rate): count_steps,
            lambda n, size, rate, wait: seconds(n, size * n, rate, wait): _(
                "In a step, a device sends one chunk, and not the whole payload."
            ),
            lambda n, size, rate, wait: seconds(n, size, rate, 0.0) + wait: _(
                "Here the latency counts once. But each step waits for the step before."
            ),
            lambda n, size, rate, wait: seconds(n, size, rate, 0.0) + 2 * wait: _(
                "Here the latency counts once in each half. But each step waits for the step before."
            ),
            lambda n, size, rate, _wait: seconds(n, size, rate, 0.0): _("The latency is missing."),
            lambda n, size, rate, wait: seconds(n, size // n * n, rate, wait): _(
                "The bytes of a chunk need not be a whole number here: divide with `/`."
            ),
            lambda *given: 1000 * seconds(*given): _("That is in milliseconds. Return seconds."),
        },
        advice=_(
            "First work out one step: its latency, and the time of a chunk on a link. Then count steps."
        ),
    )


def _figures(random: np.random.Generator) -> tuple[int, int, int, int]:
    devices = int(random.integers(2, 9))
    return devices, int(random.integers(10, 100)), int(random.integers(2, 11)), int(random.integers(1, 10))
