"""Devices that send each other arrays: a reader's function runs on all of them at once, each in a thread."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError, one_of
from course_lib.exercises.limit import Over, TooLong
from course_lib.i18n import _

Array = npt.NDArray[Any]
OnDevice = Callable[[Array, "Device"], Any]


class NothingComes(CourseError):  # noqa: N818
    """A device waits for an array that nobody sends. Where another error was raised, that is the cause."""

    def __init__(self, sender: int, receiver: int) -> None:
        numbers = {"receiver": receiver, "sender": sender}
        super().__init__(
            _("Device {receiver} waited for an array from device {sender}, and nothing arrived.", **numbers),
            cure=_("Let each device send before it waits, and as often as the receiver expects."),
        )


@dataclass(frozen=True)
class Exchange:
    """What came of a function that ran on each device of a group.

    Attributes:
        results: what it returned on each device.
        bytes_sent: how many bytes each device sent.
        time: when the last device is done, at the earliest, if each has one link that takes 1 for a byte, in
            both directions at once, and messages leave one after another.
    """

    results: tuple[Any, ...]
    bytes_sent: tuple[int, ...]
    time: int


class Device:
    """One device of a group, as the code that runs on it sees it.

    Attributes:
        id: its number, from 0.
        count: how many devices there are.
        bytes_sent: how many bytes it has sent.
        time: when it had the last array that it received.
    """

    def __init__(self, device_id: int, inboxes: _Inboxes, *, ring: bool, patience: float) -> None:
        self.id, self.count, self.bytes_sent, self.time = device_id, len(inboxes), 0, 0
        self._inboxes, self._ring, self._patience = inboxes, ring, patience
        self._link_free, self._bytes_received = 0, 0

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
        array = np.array(values)
        self.bytes_sent += array.nbytes
        self._link_free = max(self._link_free, self.time) + array.nbytes
        self._inboxes[to][self.id].put((array, self._link_free))

    def receive(self, sender: int) -> Array:
        """Returns the oldest array that a device sent to this one and that was not yet received.

        Waits until there is one.

        Raises:
            CourseError: no such device, or in a ring another one than the previous; or no array comes.
        """
        problem = _("Device {id} cannot receive from {sender!r}.", id=self.id, sender=sender)
        self._require(sender, self.previous, problem)
        try:
            message = self._inboxes[self.id][sender].get(timeout=self._patience)
        except Empty:
            message = None
        if message is None:
            raise NothingComes(sender, self.id)
        array, sent_at = message
        self._bytes_received += array.nbytes
        self.time = max(self.time, sent_at, self._bytes_received)
        return array

    def leave(self) -> None:
        """Tells all others that nothing comes from here any more."""
        for inbox in self._inboxes:
            inbox[self.id].put(None)

    def _require(self, other: int, neighbour: int, problem: str) -> None:
        if self._ring:
            reachable = [neighbour]
            cure = _("Each device sends to `device.next` and receives from `device.previous`.")
        else:
            reachable = [each for each in range(self.count) if each != self.id]
            cure = _("Leave out the device itself and numbers that no device has.")
        one_of(other, reachable, problem, cure=cure)


# By receiver, then by sender: arrays, and when each was sent
_Inboxes = Sequence[Sequence["SimpleQueue[tuple[Array, int] | None]"]]


def run_on_each(
    function: OnDevice, parts: Sequence[npt.ArrayLike], *, ring: bool = False, seconds: float = 10.0
) -> Exchange:
    """Returns what a function makes of the part of each device, what the devices sent, and how long it takes.

    It runs on all devices at the same time and gets the part of its own device only.

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
        seconds: after which a function that has not ended is ended. Nobody waits longer than half of it.

    Raises:
        TooLong: the function has not ended in time.
        CourseError: a device waits for a message that nobody sends, or sends where it cannot.
        Exception: what the function raised, on the first device on which it did.
    """
    deadline = time.monotonic() + seconds
    inboxes: _Inboxes = [[SimpleQueue() for _sender in parts] for _receiver in parts]
    devices = [Device(at, inboxes, ring=ring, patience=seconds / 2) for at in range(len(parts))]

    def run(device: Device) -> Any:
        sys.settrace(_ended_after(deadline))
        try:
            return function(np.array(parts[device.id]), device)
        finally:
            sys.settrace(None)
            device.leave()

    with ThreadPoolExecutor(len(parts)) as threads:
        runs = [threads.submit(run, device) for device in devices]
    errors = [error for each in runs if (error := each.exception())]
    for error in sorted(errors, key=_is_consequence):
        raise TooLong(seconds) if isinstance(error, Over) else error
    sent, time_taken = tuple(each.bytes_sent for each in devices), max(each.time for each in devices)
    return Exchange(tuple(each.result() for each in runs), sent, time_taken)


def _is_consequence(error: BaseException) -> int:
    """Returns 0 for an error of the reader's, and more for one that may only follow from another device's."""
    return 2 if isinstance(error, NothingComes) else 1 if isinstance(error, Over) else 0


def _ended_after(deadline: float) -> Callable[[FrameType, str, Any], Any]:
    """Returns a trace that ends a thread at its first line after the deadline, whatever it does there.

    Source: https://docs.python.org/3/library/sys.html#sys.settrace
    """

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and time.monotonic() > deadline:
            raise Over
        return trace

    return trace
