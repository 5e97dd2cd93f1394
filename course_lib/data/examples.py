"""Labelled examples on the host: what data loaders return and training takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Splits(Generic[Kind]):
    """A data set: the examples to learn from, and those to measure on."""

    train: Kind
    test: Kind


@dataclass(frozen=True)
class Examples:
    """Rows of features with their labels.

    Attributes:
        features: `[num_examples, num_features] global`, float32.
        labels: `[num_examples] global`, int64, class numbers from 0.
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def hold_out(self, count: int) -> tuple[Examples, Examples]:
        """Returns two parts that share no row: all but `count` rows, and those, drawn without replacement.

        Both keep the order of the rows. The same rows are drawn on every machine.

        >>> kept, held_out = Examples(np.eye(4, dtype=np.float32), np.arange(4)).hold_out(1)
        >>> len(kept), len(held_out)
        (3, 1)
        """
        drawn = np.zeros(len(self), bool)
        drawn[np.random.Generator(np.random.Philox(0)).permutation(len(self))[:count]] = True
        kept, held_out = (Examples(self.features[rows], self.labels[rows]) for rows in (~drawn, drawn))
        return kept, held_out
