"""Rings: an all-reduce, a reduce-scatter or an all-gather in which each device sends to the next one only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER = KINDS = ("all-reduce", "reduce-scatter", "all-gather")
LEAST_DEVICES, MOST_DEVICES = 2, 8  # each has a colour of its own in the picture


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


@dataclass(frozen=True)
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
    >>> [message.sources for message in ring.after(2).messages]
    [(3, 0), (0, 1), (1, 2), (2, 3)]

    Attributes:
        kind: one of `KINDS`.
        num_devices: how many devices stand in the ring, from 2 to 8.
        whole_bytes: the size of the whole array: of what each device adds, or of what all have gathered.

    Raises:
        CourseError: another kind or number of devices, or bytes that make no equal chunks.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
    """

    kind: str
    num_devices: int
    whole_bytes: int

    def __post_init__(self) -> None:
        cure = _('Write for example Ring("all-reduce", 4, whole_bytes=800).')
        one_of(self.kind, KINDS, _("{kind!r} does not run in a ring here.", kind=self.kind), cure=cure)
        problem = _("{count!r} is no number of devices for a ring.", count=self.num_devices)
        whole_number(self.num_devices, problem, least=LEAST_DEVICES, most=MOST_DEVICES, cure=cure)
        if self.whole_bytes % self.num_devices:
            raise CourseError(
                _(
                    "The size, {size}, does not divide by the number of devices, {count}.",
                    size=self.whole_bytes,
                    count=self.num_devices,
                ),
                allowed=_("multiples of {count}", count=self.num_devices),
                cure=_("Pad the array until its chunks are equal."),
            )

    @property
    def num_rounds(self) -> int:
        """The steps of one phase: all devices but one come after the first."""
        return self.num_devices - 1

    @property
    def num_steps(self) -> int:
        """The steps of the whole collective."""
        return self.num_rounds * (2 if self.kind == ALL_REDUCE else 1)

    def bytes_sent(self, step: int) -> int:
        """Returns how many bytes each device has sent after `step` steps."""
        return step * self.whole_bytes // self.num_devices

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

    def added(self, chunk: int, count: int) -> tuple[int, ...]:
        """Returns the devices whose values are in a chunk when `count` devices have added theirs."""
        return tuple((chunk + 1 + at) % self.num_devices for at in range(count))

    def after(self, step: int) -> RingMoment:
        """Returns what the devices hold after `step` steps. It draws itself.

        Raises:
            CourseError: there are fewer steps.
        """
        problem = _("The ring has no step {step!r}.", step=step)
        cure = _("Give the number of one of its steps.")
        return RingMoment(self, whole_number(step, problem, most=self.num_steps, cure=cure))


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
        return tuple(self._message(sender) for sender in range(self.ring.num_devices)) if self.step else ()

    @property
    def holdings(self) -> tuple[tuple[Holding, ...], ...]:
        """For each device what it has of each chunk."""
        devices = range(self.ring.num_devices)
        return tuple(tuple(self._holding(device_id, chunk) for chunk in devices) for device_id in devices)

    def _message(self, sender: int) -> Message:
        ring, made = self.ring, self.ring.round(self.step)
        receiver = (sender + 1) % ring.num_devices
        if ring.phase(self.step) == REDUCE_SCATTER:
            chunk = (sender - made) % ring.num_devices
            return Message(sender, receiver, chunk, ring.added(chunk, made), adds=True)
        chunk = (sender - made + 1) % ring.num_devices
        return Message(sender, receiver, chunk, self._whole(chunk).sources, adds=False)

    def _whole(self, chunk: int) -> Holding:
        ring = self.ring
        return Holding(
            (chunk,) if ring.kind == ALL_GATHER else ring.added(chunk, ring.num_devices), whole=True
        )

    def _holding(self, device_id: int, chunk: int) -> Holding:
        ring = self.ring
        behind = (device_id - chunk) % ring.num_devices  # the device that has the whole chunk first
        copied = self.step - (0 if ring.kind == ALL_GATHER else ring.num_rounds)
        if behind <= copied:
            return self._whole(chunk)
        if ring.kind == ALL_GATHER:
            return Holding((), whole=False)
        place = (behind - 1) % ring.num_devices  # on the way of the sum, which begins behind that device
        sources = ring.added(chunk, place + 1) if place <= self.step else (device_id,)
        return Holding(sources, whole=False, sent_on=place < self.step)
