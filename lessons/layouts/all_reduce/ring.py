"""Rings: an all-reduce, a reduce-scatter or an all-gather in which each device sends to the next one only."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.errors import whole_number
from course_lib.i18n import _

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER = KINDS = ("all-reduce", "reduce-scatter", "all-gather")
LEAST_DEVICES, MOST_DEVICES = 2, 8  # each has a colour of its own in the picture


@dataclass(frozen=True)
class Message:
    """A chunk on its way, with the devices whose values it carries, in the order in which they were added."""

    sender: int
    receiver: int
    chunk: int
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Holding:
    """What one device has of one chunk.

    Attributes:
        sources: the devices whose values are in it, in the order in which they were added; none if it has
            nothing of the chunk.
        sent_on: whether it is a partial sum that went on to the next device and is not needed any more.
    """

    sources: tuple[int, ...]
    sent_on: bool = False


@dataclass(frozen=True)
class RingMoment:
    """A ring after some of its steps.

    Attributes:
        ring: the collective and its devices.
        step: how many steps have been made.
        messages: what was sent in the last of them, in the order of the senders; nothing before the first.
        holdings: for each device what it has of each chunk.
    """

    ring: Ring
    step: int
    messages: list[Message]
    holdings: list[list[Holding]]


@dataclass(frozen=True)
class Ring:
    """A collective of devices that stand in a ring: in each step each of them sends one chunk to the next.

    The array is cut into as many chunks as there are devices. A reduce-scatter adds: chunk `c` starts
    at device `c + 1`, and each device on its way adds its values, device `c` as the last. An all-gather
    copies: chunk `c` starts at device `c` and goes round. An all-reduce is the first and then the second.

    | after step | device 0 has   | device 1 has   |
    | ---------- | -------------- | -------------- |
    | 0          | A of 0, B of 0 | A of 1, B of 1 |
    | 1          | A of 1 and 0   | B of 0 and 1   |
    | 2          | both sums      | both sums      |

    >>> ring = Ring("all-reduce", 4, whole_bytes=800)
    >>> ring.num_steps, ring.bytes_sent(ring.num_steps)
    (6, 1200)
    >>> [message.sources for message in ring.after(2).messages]
    [(3, 0), (0, 1), (1, 2), (2, 3)]

    Attributes:
        kind: one of `KINDS`.
        num_devices: how many devices stand in the ring, from 2 to 8.
        whole_bytes: the size of the whole array: of what each device adds, or of what all have gathered.

    Raises:
        CourseError: another number of devices.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
    """

    kind: str
    num_devices: int
    whole_bytes: int

    def __post_init__(self) -> None:
        cure = _('Write for example Ring("all-reduce", 4, whole_bytes=800).')
        problem = _("{count!r} is no number of devices for a ring.", count=self.num_devices)
        whole_number(self.num_devices, problem, least=LEAST_DEVICES, most=MOST_DEVICES, cure=cure)

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

    def phase(self, step: int) -> str:
        """Returns what a step is part of, counted from 1: `"reduce-scatter"` or `"all-gather"`."""
        if self.kind == ALL_REDUCE:
            return REDUCE_SCATTER if step <= self.num_rounds else ALL_GATHER
        return self.kind

    def round(self, step: int) -> int:
        """Returns the number of a step within its phase; both are counted from 1."""
        return (step - 1) % self.num_rounds + 1

    def sources(self, chunk: int) -> tuple[int, ...]:
        """Returns the devices whose values a whole chunk holds."""
        return (chunk,) if self.kind == ALL_GATHER else tuple(range(self.num_devices))

    def after(self, step: int) -> RingMoment:
        """Returns what the devices hold after `step` steps, and what they sent in the last of them."""
        devices = range(self.num_devices)
        held = [[Holding((at,) if at in self.sources(chunk) else ()) for chunk in devices] for at in devices]
        messages: list[Message] = []
        for made in range(1, step + 1):
            messages = [self._message(sender, made, held) for sender in devices]
            for message in messages:
                there, chunk = held[message.receiver], message.chunk
                if self.phase(made) == REDUCE_SCATTER:
                    there[chunk] = Holding(message.sources + there[chunk].sources)
                    held[message.sender][chunk] = Holding(message.sources, sent_on=True)
                else:
                    there[chunk] = Holding(message.sources)
        return RingMoment(self, step, messages, held)

    def _message(self, sender: int, step: int, held: list[list[Holding]]) -> Message:
        first = sender - 1 if self.phase(step) == REDUCE_SCATTER else sender  # the chunk of the first round
        chunk = (first - self.round(step) + 1) % self.num_devices
        return Message(sender, (sender + 1) % self.num_devices, chunk, held[sender][chunk].sources)
