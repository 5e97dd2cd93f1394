"""The exercises of this lesson: an all-reduce of a ring of devices, and a change of layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.communication.messages import Array, Device, Exchange, OnDevice, run_on_each

_SECONDS = 2.0  # in which a group of devices has long ended, also on a busy machine
_GRID = MeshSpec([("x", 4), ("y", 2)])
_FROM, _TO = LayoutSpec([UNSHARDED, "x"], _GRID), LayoutSpec(["x", "y"], _GRID)
_SHAPE = (16, 16)
_LEAST = 192  # bytes sent: one all-to-all of 256 bytes among 4 devices, and the rest is cut for nothing


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

    wrong = judge(
        answer,
        lambda parts: _by_device([sum(parts)] * len(parts)),
        _cases(),
        run=run,
        tolerance=0,
        advice=_(
            "Here two digits of a sum count the values of one device. In the end each of the four is there"
            " once: 0 is missing, more than 1 was counted more than once."
        ),
    )
    return wrong or next(filter(None, (_too_much(*both) for both in exchanges)), None)


def _by_device(results: Sequence[Any]) -> dict[str, Any]:
    return {f"device {at}": result for at, result in enumerate(results)}


def _cases() -> list[Case]:
    """Returns parts for up to 8 devices, some that do not make equal chunks, and first the smallest.

    There the device d brings 100 ** d everywhere, so that the digits of a sum count its values.
    """
    uneven = _("The array is not cut into equal chunks here. `np.array_split` copes with that.")
    random = np.random.default_rng(1)
    return [
        Case(([np.full(4, 100.0**at, np.float32) for at in range(4)],)),
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


@exercise("communication-blocks", right=Callable)
def in_blocks(answer: Callable[..., Any]) -> str | None:
    """A change of layout by way of another one, in which a device sends least."""
    values = np.random.default_rng(2).permutation(np.arange(256, dtype=np.float32)).reshape(_SHAPE)
    with on_devices() as (tf, dtensor):
        matrix = dtensor.pack(values, _FROM)
        moved = answered(answer(matrix))
        if not (tf.is_tensor(moved) and dtensor.dtensor.is_dtensor(moved)):
            return _("Return a DTensor: `dtensor.relayout` gives one.")
        layout = dtensor.fetch_layout(moved)
        if layout != _TO:
            return _(
                "The result has the layout {layout}; it should have {target}.", layout=layout, target=_TO
            )
        if not np.array_equal(dtensor.to_numpy(moved), values):
            return _("The layout is right, but the values are not those of the matrix.")
        from course_lib.devices.graphs import collectives

        ran = collectives(answer, matrix)
    sent = sum(each.bytes_sent for each in ran)
    if sent > _LEAST:
        return _(
            "The values are right, but a device sends {sent:g} bytes: {collectives}. {least} are enough.",
            sent=float(sent),
            collectives=_(", ").join(map(str, ran)),
            least=_LEAST,
        )
    return None
