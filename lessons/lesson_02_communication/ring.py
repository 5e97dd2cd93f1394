"""Rings: an all-reduce, a reduce-scatter or an all-gather in which each device sends to the next one only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER = KINDS = ("all-reduce", "reduce-scatter", "all-gather")
MOST_DEVICES = 64


@dataclass(frozen=True)
class Message:
    """A chunk on its way from a device to the next one.

    Attributes:
        sender: the device that sends it.
        receiver: the device after it in the ring.
        chunk: the number of the chunk, counted from 0.
        sources: the devices whose values it carries, in the order in which they were added.
        adds: whether the receiver adds its own values; otherwise it keeps a copy.
    """

    sender: int
    receiver: int
    chunk: int
    sources: tuple[int, ...]
    adds: bool


@dataclass(frozen=True)
class Holding:
    """What one device has of one chunk.

    Attributes:
        sources: the devices whose values are in it, in the order in which they were added; none if it has
            nothing of the chunk.
        whole: whether no value is missing.
        sent_on: whether it is a partial sum that went on to the next device and is not needed any more.
    """

    sources: tuple[int, ...]
    whole: bool
    sent_on: bool = False


@dataclass(frozen=True, init=False)
class Ring:
    """A collective of devices that stand in a ring: in each step each of them sends one chunk to the next.

    The array is cut into as many equal chunks as there are devices. A reduce-scatter adds: chunk `c` starts
    at device `c + 1`, and each device on its way adds its values, device `c` as the last. An all-gather
    copies: chunk `c` starts at device `c` and goes round. An all-reduce is the first and then the second.

    | after step | device 0 has   | device 1 has   |
    | ---------- | -------------- | -------------- |
    | 0          | A of 0, B of 0 | A of 1, B of 1 |
    | 1          | A of 1 and 0   | B of 0 and 1   |
    | 2          | both sums      | both sums      |

    >>> ring = Ring("all-reduce", 4, whole_bytes=800)
    >>> ring.num_steps, ring.bytes_sent(ring.num_steps), float(ring.share_sent(ring.num_steps))
    (6, 1200, 1.5)
    >>> [message.sources for message in ring.messages(2)]
    [(3, 0), (0, 1), (1, 2), (2, 3)]

    Attributes:
        kind: one of `KINDS`.
        num_devices: how many devices stand in the ring.
        whole_bytes: the size of the whole array: of what each device adds, or of what all have gathered.

    Raises:
        CourseError: another kind, no whole number of 2 to 64 devices, or bytes that make no equal chunks.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
    """

    kind: str
    num_devices: int
    whole_bytes: int

    def __init__(self, kind: str, num_devices: int, whole_bytes: int) -> None:
        cure = _('Write for example Ring("all-reduce", 4, whole_bytes=800).')
        one_of(kind, KINDS, _("{kind!r} does not run in a ring here.", kind=kind), cure=cure)
        problem = _("{count!r} is no number of devices for a ring.", count=num_devices)
        count = whole_number(num_devices, problem, least=2, most=MOST_DEVICES, cure=cure)
        problem = _("An array cannot have {size!r} bytes.", size=whole_bytes)
        size = whole_number(whole_bytes, problem, least=0, cure=cure)
        if size % count:
            raise CourseError(
                _(
                    "The size, {size}, does not divide by the number of devices, {count}.",
                    size=size,
                    count=count,
                ),
                allowed=_("multiples of {count}", count=count),
                cure=_("Pad the array until its chunks are equal."),
            )
        object.__setattr__(self, "kind", str(kind))
        object.__setattr__(self, "num_devices", count)
        object.__setattr__(self, "whole_bytes", size)

    @property
    def num_rounds(self) -> int:
        """The steps of one phase: all devices but one come after the first."""
        return self.num_devices - 1

    @property
    def num_steps(self) -> int:
        """The steps of the whole collective."""
        return self.num_rounds * (2 if self.kind == ALL_REDUCE else 1)

    @property
    def chunk_bytes(self) -> int:
        """The bytes of one chunk."""
        return self.whole_bytes // self.num_devices

    def bytes_sent(self, step: int) -> int:
        """Returns how many bytes each device has sent after `step` steps."""
        return step * self.chunk_bytes

    def share_sent(self, step: int) -> Fraction:
        """Returns the same as a share of the array; at the end of an all-reduce 2 (n - 1) / n."""
        return Fraction(step, self.num_devices)

    def phase(self, step: int) -> str:
        """Returns what a step is part of, counted from 1: `"reduce-scatter"` or `"all-gather"`."""
        if self.kind == ALL_REDUCE:
            return REDUCE_SCATTER if step <= self.num_rounds else ALL_GATHER
        return self.kind

    def round(self, step: int) -> int:
        """Returns the number of a step within its phase; both are counted from 1."""
        return (step - 1) % self.num_rounds + 1

    def chunk_of(self, sender: int, step: int) -> int:
        """Returns the number of the chunk that a device sends in a step, counted from 1."""
        ahead = 1 if self.phase(step) == REDUCE_SCATTER else 0
        return (sender - ahead - self.round(step) + 1) % self.num_devices

    def messages(self, step: int) -> tuple[Message, ...]:
        """Returns what is sent in a step, counted from 1, in the order of the senders.

        Raises:
            CourseError: there is no such step.
        """
        self._require_step(step, least=1)
        return self.after(step).messages

    def after(self, step: int) -> RingMoment:
        """Returns what the devices hold after `step` steps. It draws itself.

        Raises:
            CourseError: there are fewer steps.
        """
        return RingMoment(self, self._require_step(step))

    def _require_step(self, step: int, least: int = 0) -> int:
        problem = _("The ring has no step {step!r}.", step=step)
        cure = _("Give the number of one of its steps.")
        return whole_number(step, problem, least=least, most=self.num_steps, cure=cure)


@dataclass(frozen=True)
class RingMoment(DrawsItself):
    """A ring after some of its steps: `ring.after(step)`. It draws itself.

    >>> moment = Ring("all-reduce", 4, whole_bytes=800).after(1)
    >>> [holding.sources for holding in moment.holdings[0]]
    [(0,), (0,), (3, 0), (0,)]

    Attributes:
        ring: the collective and its devices.
        step: how many steps have been made.
    """

    drawn_by = "lessons.lesson_02_communication.ring_picture"

    ring: Ring
    step: int

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was sent in the last of these steps, in the order of the senders; nothing before the first."""
        return self._played[0]

    @property
    def holdings(self) -> tuple[tuple[Holding, ...], ...]:
        """For each device what it has of each chunk."""
        return self._played[1]

    @cached_property
    def _played(self) -> tuple[tuple[Message, ...], tuple[tuple[Holding, ...], ...]]:
        """The messages of the last step, and the holdings after all of them."""
        messages: list[Message] = []
        held = [list(row) for row in _start(self.ring)]
        for step in range(1, self.step + 1):
            messages = _sent(self.ring, step, held)
            for message in messages:
                _deliver(message, held, self.ring.num_devices)
        return tuple(messages), tuple(map(tuple, held))


def _start(ring: Ring) -> list[list[Holding]]:
    """Returns what each device has of each chunk at first: its values of all, or one chunk of the whole."""
    devices = range(ring.num_devices)
    if ring.kind == ALL_GATHER:
        held = [[Holding((), whole=False)] * ring.num_devices for _device in devices]
        for device_id in devices:
            held[device_id][device_id] = Holding((device_id,), whole=True)
        return held
    return [[Holding((device_id,), whole=False)] * ring.num_devices for device_id in devices]


def _sent(ring: Ring, step: int, held: list[list[Holding]]) -> list[Message]:
    """Returns what all devices send at once, out of what they had before the step."""
    adds = ring.phase(step) == REDUCE_SCATTER
    chunks = [ring.chunk_of(sender, step) for sender in range(ring.num_devices)]
    return [
        Message(sender, (sender + 1) % ring.num_devices, chunk, held[sender][chunk].sources, adds)
        for sender, chunk in enumerate(chunks)
    ]


def _deliver(message: Message, held: list[list[Holding]], num_devices: int) -> None:
    chunk, there = message.chunk, held[message.receiver]
    if message.adds:
        sources = (*message.sources, *there[chunk].sources)
        there[chunk] = Holding(sources, whole=len(sources) == num_devices)
        held[message.sender][chunk] = replace(held[message.sender][chunk], sent_on=True)
    else:
        there[chunk] = Holding(message.sources, whole=True)
