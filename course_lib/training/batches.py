"""Batches: which rows of a training in which order, and how an evaluation fills up its last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples

Features = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


@lru_cache(maxsize=4)
def shuffled(num_examples: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Returns the order of the rows in one epoch: the same for the same seed and epoch, on every machine."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], np.uint64)))
    order = random.permutation(num_examples).astype(np.int64)
    order.flags.writeable = False  # it is shared with whoever asks again
    return order


@dataclass(frozen=True)
class BatchOrder:
    """Which rows each step of a training takes; each epoch leaves the last ones of its order out.

    >>> order = BatchOrder(num_examples=10, batch_size=4, seed=0)
    >>> order.steps_per_epoch, order.examples_per_epoch
    (2, 8)

    Attributes:
        num_examples: the number of examples in the training set.
        batch_size: the number of rows in a batch.
        seed: of the order.
    """

    num_examples: int
    batch_size: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        return self.num_examples // self.batch_size

    @property
    def examples_per_epoch(self) -> int:
        """The number of examples that an epoch trains on."""
        return self.steps_per_epoch * self.batch_size

    def stack(self, examples: Examples, step: int, num_batches: int) -> tuple[Features, Labels]:
        """Returns the batches that come after `step`, on top of each other; at most those of its epoch.

        Where the epoch ends, rows come again: a stack has the same shape everywhere, so that TensorFlow
        traces once. Who takes it must know how many of its batches are due.

        Args:
            examples: the examples to take from.
            step: the number of steps that were done.
            num_batches: the number of batches.

        Returns:
            Features `[num_batches, batch_size, ...] global`, and labels `[num_batches, batch_size] global`.
        """
        epoch, done = divmod(step, self.steps_per_epoch)
        last = min(done + num_batches, self.steps_per_epoch) * self.batch_size
        rows = shuffled(self.num_examples, self.seed, epoch)[done * self.batch_size : last]
        taken = np.resize(rows, (num_batches, self.batch_size))
        return examples.features[taken], examples.labels[taken]


def padded(examples: Examples, num_rows: int) -> Iterator[tuple[Features, Labels, Weights]]:
    """Yields every example once, in order, in batches of `num_rows` of which the last is filled up.

    Args:
        examples: the examples.
        num_rows: the number of rows in a batch.

    Yields:
        Features `[num_rows, ...] global`, labels `[num_rows] global`, and weights `[num_rows] global`:
        1 for an example, 0 for a row that only fills up.
    """
    for start in range(0, len(examples), num_rows):
        real = min(num_rows, len(examples) - start)
        rows = np.resize(np.arange(start, start + real), num_rows)
        weights = (np.arange(num_rows) < real).astype(np.float32)
        yield examples.features[rows], examples.labels[rows], weights
