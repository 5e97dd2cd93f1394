"""Labelled texts: what a text data set is before it becomes numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TextExamples:
    """Texts with their labels.

    Attributes:
        texts: one text an example.
        labels: `[num_examples] global`, int64, class numbers from 0.
    """

    texts: tuple[str, ...]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def fingerprint(self) -> str:
        """Returns a SHA-256 of the texts in their order: other texts, another fingerprint."""
        digest = hashlib.sha256()
        digest.update(",".join(str(len(text)) for text in self.texts).encode())
        digest.update("".join(self.texts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True)
class Reviews:
    """Film reviews with label 1 for a good and 0 for a bad one.

    Attributes:
        source: where they come from: "built-in" for the stand-in, "tfds" for the real ones.
        train: the reviews to learn from.
        test: the reviews to measure on, of other films.
    """

    source: str
    train: TextExamples
    test: TextExamples
