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
