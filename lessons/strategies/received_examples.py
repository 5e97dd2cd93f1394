"""Who got which example: how global batches are split over replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from course_lib.pictures.figures import Figure
from course_lib.specs.drawing import DrawsItself

Part = tuple[int, ...]
Batch = tuple[Part, ...]


@dataclass(frozen=True, init=False)
class ReceivedExamples(DrawsItself):
    """Which examples each replica received of each global batch, without padding. It draws itself.

    >>> received = ReceivedExamples([[[0, 1], [2, 3]], [[4], []]])
    >>> received.num_replicas, received.sizes, received.batch_sizes
    (2, ((2, 2), (1, 0)), (4, 1))

    Attributes:
        batches: for each global batch and each replica the indices of the examples that it received.
    """

    batches: tuple[Batch, ...]

    def __init__(self, batches: Iterable[Iterable[Iterable[int]]]) -> None:
        """Takes any lists of indices."""
        read = tuple(tuple(tuple(map(int, part)) for part in batch) for batch in batches)
        object.__setattr__(self, "batches", read)

    def picture(self) -> Figure:
        """Returns the picture of who got which example."""
        from lessons.strategies.received_picture import received_figure

        return received_figure(self)

    @property
    def num_replicas(self) -> int:
        """How many replicas share each batch."""
        return len(self.batches[0])

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """How many examples each replica received, for each batch."""
        return tuple(tuple(map(len, batch)) for batch in self.batches)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """How many examples each global batch has."""
        return tuple(map(sum, self.sizes))

    @property
    def uneven(self) -> tuple[int, ...]:
        """The numbers of the batches whose parts differ in size."""
        return tuple(number for number, sizes in enumerate(self.sizes) if len(set(sizes)) > 1)

    @property
    def empty(self) -> tuple[tuple[int, int], ...]:
        """Batch and replica of each empty part."""
        return tuple(
            (number, replica)
            for number, sizes in enumerate(self.sizes)
            for replica, size in enumerate(sizes)
            if not size
        )

    @property
    def repeated(self) -> tuple[int, ...]:
        """The examples that were received more than once, in order.

        >>> ReceivedExamples([[[0, 1], [0, 1]], [[2], [3]]]).repeated
        (0, 1)
        """
        times = Counter(chain.from_iterable(chain.from_iterable(self.batches)))
        return tuple(sorted(example for example, count in times.items() if count > 1))


def split(values: Sequence[float], num_replicas: int) -> tuple[tuple[float, ...], ...]:
    """Returns the examples of a global batch as a distributed dataset gives them to the replicas.

    Each replica takes the number of examples divided by that of the replicas, rounded up, until none is left.

    >>> split([1, 2, 3, 4, 5], 4)
    ((1, 2), (3, 4), (5,), ())

    Args:
        values: a value for each example, in their order.
        num_replicas: the number of replicas.

    Source: https://www.tensorflow.org/tutorials/distribute/input (Batching), and a test that compares.
    """
    size = -(-len(values) // num_replicas)
    return tuple(tuple(values[at * size : (at + 1) * size]) for at in range(num_replicas))
