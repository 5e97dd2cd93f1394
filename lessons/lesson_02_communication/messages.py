"""Devices that send each other arrays: a reader's function runs on all of them at once, each in a thread."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _

Array = npt.NDArray[Any]
OnDevice = Callable[[Array, "Device"], Any]

_NUMBERS = "biuf"  # NumPy's letters for truth values, whole numbers and fractions


@dataclass(frozen=True)
class Exchange:
    """What came of a function that ran on each device of a group.

    Attributes:
        results: what it returned on each device.
        bytes_sent: how many bytes each device sent.
        arrays_sent: how many arrays each device sent.
        numbers_sent: how many numbers were in them.
    """

    results: tuple[Any, ...]
    bytes_sent: tuple[int, ...]
    arrays_sent: tuple[int, ...]
    numbers_sent: tuple[int, ...]


class Device:
    """One device of a group, as the code that runs on it sees it.

    Attributes:
        id: its number, from 0.
        count: how many devices there are.
    """

    def __init__(self, device_id: int, count: int, post: _Post, *, ring: bool) -> None:
        self.id, self.count = device_id, count
        self._post, self._ring = post, ring
        self._sent: list[Array] = []

    @property
    def next(self) -> int:
        """The device after this one in the ring."""
        return (self.id + 1) % self.count

    @property
    def previous(self) -> int:
        """The device before this one in the ring."""
        return (self.id - 1) % self.count

    @property
    def sent(self) -> tuple[Array, ...]:
        """The arrays that this device has sent so far."""
        return tuple(self._sent)

    def __repr__(self) -> str:
        return f"<device {self.id} of {self.count}>"

    def send(self, to: int, values: npt.ArrayLike) -> None:
        """Sends a copy of an array to another device; does not wait until it is received.

        Raises:
            CourseError: no such device, or in a ring another one than the next; or no numbers.
        """
        self._require(to, self.next, _("Device {id} cannot send to {to!r}.", id=self.id, to=to))
        array = np.array(values)
        if array.dtype.kind not in _NUMBERS:
            raise CourseError(
                _("Device {id} sends something that is no array of numbers.", id=self.id),
                allowed=_("an array or a number"),
                cure=_("Send one array at a time."),
            )
        self._sent.append(array)
        self._post.put(self.id, int(to), array)

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
        cure = _("Each device sends to `device.next` and receives from `device.previous`.")
        if self._ring:
            one_of(other, [neighbour], problem, cure=cure)
            return
        cure = _("Leave out the device itself and numbers that no device has.")
        whole_number(other, problem, most=self.count - 1, cure=cure)
        one_of(other, [each for each in range(self.count) if each != self.id], problem, cure=cure)


def run_on_each(function: OnDevice, parts: Sequence[npt.ArrayLike], *, ring: bool = False) -> Exchange:
    """Returns what a function makes of the part of each device, and how much the devices sent each other.

    It runs on all devices at the same time and sees the part of its own device only.

    >>> def swapped(mine, device):
    ...     device.send(device.next, mine)
    ...     return device.receive(device.previous)
    >>> run_on_each(swapped, [[1.0], [2.0]])
    Exchange(results=(array([2.]), array([1.])), bytes_sent=(8, 8), arrays_sent=(1, 1), numbers_sent=(1, 1))

    Args:
        function: `function(mine, device)`, where `mine` is a copy of the part and `device` a `Device`.
        parts: an array for each device.
        ring: whether a device can reach its neighbours only.

    Raises:
        CourseError: a device waits for a message that nobody sends, or sends where it cannot.
        Exception: what the function raised, on the first device on which it did.
    """
    post = _Post(len(parts))
    devices = [Device(at, len(parts), post, ring=ring) for at in range(len(parts))]
    runs = [_Run(function, np.array(part), device) for part, device in zip(parts, devices, strict=True)]
    threads = [threading.Thread(target=run, args=(post,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = [run.error for run in runs if run.error is not None]
    for error in sorted(failed, key=lambda error: error in post.in_vain):
        raise error
    sent = [device.sent for device in devices]
    return Exchange(
        tuple(run.result for run in runs),
        bytes_sent=tuple(sum(array.nbytes for array in arrays) for arrays in sent),
        arrays_sent=tuple(map(len, sent)),
        numbers_sent=tuple(sum(array.size for array in arrays) for arrays in sent),
    )


@dataclass
class _Run:
    """A function on one device, and what came of it."""

    function: OnDevice
    mine: Array
    device: Device
    result: Any = None
    error: BaseException | None = None

    def __call__(self, post: _Post) -> None:
        try:
            self.result = self.function(self.mine, self.device)
        except BaseException as error:  # raised again in the thread that called
            self.error = error
        finally:
            post.leave()


class _Post:
    """What is on its way between devices. It notices when all of them wait, so that nobody waits for ever.

    Attributes:
        in_vain: the errors that it raised. Where another one was raised too, that is their cause.
    """

    def __init__(self, num_devices: int) -> None:
        self.in_vain: list[BaseException] = []
        self._changed = threading.Condition()
        self._on_the_way: dict[tuple[int, int], deque[Array]] = defaultdict(deque)
        self._running, self._stuck = num_devices, False
        self._waiting: dict[int, int] = {}  # for each device that waits, for whom

    def put(self, sender: int, receiver: int, array: Array) -> None:
        with self._changed:
            self._on_the_way[sender, receiver].append(array)
            if self._waiting.get(receiver) == sender:
                del self._waiting[receiver]
            self._changed.notify_all()

    def take(self, sender: int, receiver: int) -> Array:
        with self._changed:
            arrays = self._on_the_way[sender, receiver]
            if not arrays:
                self._waiting[receiver] = sender
                self._settle()
                self._changed.wait_for(lambda: arrays or self._stuck)
            if not arrays:
                self.in_vain.append(_nothing_comes(sender, receiver))
                raise self.in_vain[-1]
            return arrays.popleft()

    def leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._settle()

    def _settle(self) -> None:
        if self._waiting and len(self._waiting) == self._running:
            self._stuck = True
            self._changed.notify_all()


def _nothing_comes(sender: int, receiver: int) -> CourseError:
    return CourseError(
        _(
            "Device {receiver} waits for an array from device {sender}, and none will come.",
            receiver=receiver,
            sender=sender,
        ),
        allowed=_("as many `receive` as `send`"),
        cure=_("Let every device send as often as its receiver receives from it."),
    )
