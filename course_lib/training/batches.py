"""Batches: which rows, in which order, and what fills up the last one."""

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

DROP, PAD = LAST_BATCH = ("drop", "pad")


@lru_cache(maxsize=4)
def shuffled(num_examples: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Returns the order of the rows in one epoch: the same for the same seed and epoch, on every machine."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], np.uint64)))
    order = random.permutation(num_examples).astype(np.int64)
    order.flags.writeable = False  # it is shared with whoever asks again
    return order


@dataclass(frozen=True)
class BatchOrder:
    """Which rows each step of a training takes.

    >>> order = BatchOrder(num_examples=10, batch_size=4, seed=0, last_batch="pad")
    >>> order.steps_per_epoch, [order.num_real(step) for step in range(4)]
    (3, [4, 4, 2, 4])

    Attributes:
        num_examples: the number of examples in the training set.
        batch_size: the number of rows in a batch.
        seed: of the order.
        last_batch: what happens to the last, smaller batch of an epoch: "drop" leaves it out, "pad" fills it
            up with rows of weight 0.
    """

    num_examples: int
    batch_size: int
    seed: int
    last_batch: str = DROP

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(self.num_examples, self.batch_size)
        return whole + (self.last_batch == PAD and rest > 0)

    @property
    def examples_per_epoch(self) -> int:
        """The number of examples that an epoch trains on."""
        return min(self.num_examples, self.steps_per_epoch * self.batch_size)

    def num_real(self, step: int) -> int:
        """Returns the number of examples in the batch of the step after `step`."""
        at = step % self.steps_per_epoch
        return min(self.batch_size, self.num_examples - at * self.batch_size)

    def stack(
        self, examples: Examples, step: int, num_batches: int
    ) -> tuple[Features, Labels, Weights | None]:
        """Returns the batches that come after `step`, on top of each other; at most those of its epoch.

        Where the epoch ends, rows come again: a stack has the same shape everywhere, so that TensorFlow
        traces once. Who takes it must know how many of its batches are due.

        Args:
            examples: the examples to take from.
            step: the number of steps that were done.
            num_batches: the number of batches.

        Returns:
            Features `[num_batches, batch_size, ...] global`, labels `[num_batches, batch_size] global`, and
            weights of the same shape: 1 for an example, 0 for a row that fills up. None stands for all 1.
        """
        epoch, done = divmod(step, self.steps_per_epoch)
        last = min(done + num_batches, self.steps_per_epoch) * self.batch_size
        rows = shuffled(self.num_examples, self.seed, epoch)[done * self.batch_size : last]
        shape = num_batches, self.batch_size
        taken = np.resize(rows, shape)
        if self.last_batch == DROP:
            return examples.features[taken], examples.labels[taken], None
        weights = (np.arange(taken.size) < len(rows)).astype(np.float32).reshape(shape)
        return examples.features[taken], examples.labels[taken], weights


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
