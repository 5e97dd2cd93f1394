"""Devices that send each other arrays: a reader's function runs on all of them at once, each in a thread."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError, one_of
from course_lib.exercises.limit import TooLong
from course_lib.i18n import _

Array = npt.NDArray[Any]
OnDevice = Callable[[Array, "Device"], Any]

_PAUSE_SECONDS, _MOST_PAUSES = 0.05, 40  # to end a thread


class _Ended(BaseException):
    """Ends the thread of a device; no `except Exception` of a reader's catches it."""


@dataclass(frozen=True)
class Exchange:
    """What came of a function that ran on each device of a group.

    Attributes:
        results: what it returned on each device.
        bytes_sent: how many bytes each device sent.
    """

    results: tuple[Any, ...]
    bytes_sent: tuple[int, ...]


class Device:
    """One device of a group, as the code that runs on it sees it.

    Attributes:
        id: its number, from 0.
        count: how many devices there are.
    """

    def __init__(self, device_id: int, count: int, post: _Post, *, ring: bool) -> None:
        self.id, self.count = device_id, count
        self._post, self._ring = post, ring

    @property
    def next(self) -> int:
        """The device after this one in the ring."""
        return (self.id + 1) % self.count

    @property
    def previous(self) -> int:
        """The device before this one in the ring."""
        return (self.id - 1) % self.count

    def send(self, to: int, values: npt.ArrayLike) -> None:
        """Sends a copy of an array to another device; does not wait until it is received.

        Raises:
            CourseError: no such device, or in a ring another one than the next.
        """
        self._require(to, self.next, _("Device {id} cannot send to {to!r}.", id=self.id, to=to))
        self._post.put(self.id, int(to), np.array(values))

    def receive(self, sender: int) -> Array:
        """Returns the oldest array that a device sent to this one and that was not yet received.

        Waits until there is one.

        Raises:
            CourseError: no such device, or in a ring another one than the previous; or no array will come.
        """
        problem = _("Device {id} cannot receive from {sender!r}.", id=self.id, sender=sender)
        self._require(sender, self.previous, problem)
        return self._post.take(int(sender), self.id)

    def _require(self, other: int, neighbour: int, problem: str) -> None:
        if self._ring:
            reachable = [neighbour]
            cure = _("Each device sends to `device.next` and receives from `device.previous`.")
        else:
            reachable = [each for each in range(self.count) if each != self.id]
            cure = _("Leave out the device itself and numbers that no device has.")
        one_of(other, reachable, problem, cure=cure)


def run_on_each(
    function: OnDevice, parts: Sequence[npt.ArrayLike], *, ring: bool = False, seconds: float = 20.0
) -> Exchange:
    """Returns what a function makes of the part of each device, and how much the devices sent each other.

    It runs on all devices at the same time and sees the part of its own device only. No thread goes on
    when this returns or raises.

    >>> def swapped(mine, device):
    ...     device.send(device.next, mine)
    ...     return device.receive(device.previous)
    >>> exchange = run_on_each(swapped, [[1.0], [2.0]])
    >>> exchange.results, exchange.bytes_sent
    ((array([2.]), array([1.])), (8, 8))

    Args:
        function: `function(mine, device)`, where `mine` is a copy of the part and `device` a `Device`.
        parts: an array for each device.
        ring: whether a device can reach its neighbours only.
        seconds: after which a function that has not ended is ended.

    Raises:
        TooLong: the function has not ended in time.
        CourseError: a device waits for a message that nobody sends, or sends where it cannot.
        Exception: what the function raised, on the first device on which it did.
    """
    post, devices = _Post(len(parts)), range(len(parts))
    results: list[Any] = [None] * len(parts)
    errors: dict[int, BaseException] = {}

    def run(device: Device) -> None:
        try:
            results[device.id] = function(np.array(parts[device.id]), device)
        except BaseException as error:  # raised again in the thread that called
            errors[device.id] = error
        finally:
            post.leave()

    threads = [
        threading.Thread(target=run, args=(Device(at, len(parts), post, ring=ring),), daemon=True)
        for at in devices
    ]
    in_time = _run_all(threads, post, seconds)
    in_order = [errors[at] for at in sorted(errors)]
    for error in in_order:
        if error not in post.in_vain and not isinstance(error, _Ended):
            raise error
    if not in_time:
        raise _endless(seconds)
    if in_order:
        raise in_order[0]
    return Exchange(tuple(results), tuple(post.bytes_sent))


def _run_all(threads: Sequence[threading.Thread], post: _Post, seconds: float) -> bool:
    """Runs threads, ends those that go on for longer, and returns whether none did."""
    deadline = time.monotonic() + seconds
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)
    finally:  # also where the reader stops the cell
        post.close()
        _end(threads)


def _end(threads: Sequence[threading.Thread]) -> None:
    """Ends threads: those that send or receive end by themselves now, and others at their next line."""
    for pause in range(_MOST_PAUSES):
        running = [thread for thread in threads if thread.is_alive()]
        for thread in running if pause else []:
            ident, ended = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Ended)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ended)
        for thread in running:
            thread.join(_PAUSE_SECONDS / len(running))


class _Post:
    """What is on its way between devices. It notices when all of them wait, so that nobody waits for ever.

    Attributes:
        bytes_sent: how many bytes each device sent.
        in_vain: the errors that it raised. Where another one was raised too, that is their cause.
    """

    def __init__(self, num_devices: int) -> None:
        self.bytes_sent = [0] * num_devices
        self.in_vain: list[BaseException] = []
        self._changed = threading.Condition()
        self._on_the_way: dict[tuple[int, int], deque[Array]] = defaultdict(deque)
        self._waiting: set[tuple[int, int]] = set()  # senders, and who waits for them
        self._running, self._stuck, self._closed = num_devices, False, False

    def put(self, sender: int, receiver: int, array: Array) -> None:
        with self._changed:
            self._require_open()
            self.bytes_sent[sender] += array.nbytes
            self._on_the_way[sender, receiver].append(array)
            self._waiting.discard((sender, receiver))
            self._changed.notify_all()

    def take(self, sender: int, receiver: int) -> Array:
        with self._changed:
            arrays = self._on_the_way[sender, receiver]
            if not arrays:
                self._waiting.add((sender, receiver))
                self._settle()
                self._changed.wait_for(lambda: arrays or self._stuck or self._closed)
            self._require_open()
            if not arrays:
                self.in_vain.append(_nothing_comes(sender, receiver))
                raise self.in_vain[-1]
            return arrays.popleft()

    def leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._settle()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _settle(self) -> None:
        if self._waiting and len(self._waiting) == self._running:
            self._stuck = True
            self._changed.notify_all()

    def _require_open(self) -> None:
        if self._closed:
            raise _Ended


def _nothing_comes(sender: int, receiver: int) -> CourseError:
    return CourseError(
        _(
            "Device {receiver} waits for an array from device {sender}, and none will come.",
            receiver=receiver,
            sender=sender,
        ),
        allowed=_("as many `receive` as `send`"),
        cure=_("Let every device send as often as its receiver receives from it, and send before it waits."),
    )


def _endless(seconds: float) -> TooLong:
    return TooLong(
        _("The function has not ended after {seconds:g} seconds.", seconds=seconds),
        allowed=_("loops that end on every device"),
        cure=_("Does the loop count its steps? A `while` needs a line such as `step += 1`."),
    )
