"""Who got which example: how global batches are split over replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
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

    Raises:
        CourseError: no batch, no replica, batches of unlike numbers of replicas, or an index that is no whole
            number from 0.
    """

    drawn_by = "course_lib.pictures.received"

    batches: tuple[Batch, ...]

    def __init__(self, batches: Iterable[Iterable[Iterable[int]]]) -> None:
        """Takes any lists of indices."""
        checked = tuple(_to_batch(batch) for batch in _items(batches))
        if not checked or not checked[0] or len({len(batch) for batch in checked}) > 1:
            replicas = [len(batch) for batch in checked]
            raise CourseError(
                _("The numbers of replicas in the batches are {replicas}.", replicas=replicas),
                allowed=_("one batch at least, and in each batch a part for every replica"),
                cure=_("Give a replica that received nothing an empty part: []."),
            )
        object.__setattr__(self, "batches", checked)

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


def _to_batch(batch: Any) -> Batch:
    return tuple(tuple(_to_index(index) for index in _items(part)) for part in _items(batch))


def _to_index(index: Any) -> int:
    return whole_number(
        index,
        _("{index!r} is not the index of an example.", index=index),
        cure=_("Number the examples from 0, in the order of the data set."),
    )


def _items(given: Any) -> Iterable[Any]:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return given
    raise CourseError(
        _("{given!r} is no list of what replicas received.", given=given),
        allowed=_("for each batch and each replica a list of indices"),
        cure=_("Write batches in lists, for example [[[0, 1], [2, 3]], [[4], []]]."),
    )


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
