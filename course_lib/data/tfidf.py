"""From texts to rows of numbers: tf-idf, the preprocessing step before a dense model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

_TEXTS_PER_BATCH = 2_048


@dataclass(frozen=True)
class Vectorizer:
    """Turns texts into rows of tf-idf, one column for each token that it knows.

    It holds plain data, all that is needed to build the preprocessing step again, bit for bit: for training
    from a cache, or in front of a model that is served.

    Attributes:
        vocabulary: the token of each column, frequent ones first; column 0 is for all others, "[UNK]".
        idf_weights: `[len(vocabulary)] global`, float32: what one occurrence of each token counts.
        num_tokens: the number of columns; those beyond the vocabulary stay 0.
        unit_length: whether rows are scaled to length 1.
    """

    vocabulary: tuple[str, ...]
    idf_weights: npt.NDArray[np.float32]
    num_tokens: int
    unit_length: bool

    @cached_property
    def module(self) -> Any:
        """The preprocessing step as a `tf.Module` that also works in a `tf.function` or a SavedModel."""
        return _VectorizerModule(self)

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Returns the rows of `texts`, `[len(texts), num_tokens] global`."""
        return np.asarray(self.module(tf.constant(list(texts), tf.string)))


class _VectorizerModule(tf.Module):  # type: ignore[misc, name-defined]
    """A text layer with the tables of a `Vectorizer`, so that a SavedModel takes them along."""

    def __init__(self, vectorizer: Vectorizer) -> None:
        super().__init__(name="vectorizer")
        self.unit_length = vectorizer.unit_length
        with tf.init_scope():
            self.layer = _text_layer(vectorizer.num_tokens)
            self.layer.set_vocabulary(list(vectorizer.vocabulary), idf_weights=vectorizer.idf_weights)

    def __call__(self, texts: Any) -> Any:
        """Returns the rows of `texts`: `[batch] global` of strings to `[batch, num_tokens] global`."""
        rows = self.layer(texts)
        return _scaled(rows) if self.unit_length else rows


def rows_of(vectorizer: Vectorizer, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Returns the rows of many texts, a batch at a time: `[len(texts), num_tokens] global`."""
    return np.concatenate([vectorizer(texts[batch]) for batch in _batches(len(texts))])


def unit_rows(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns rows scaled to length 1, bit for bit as a vectorizer scales them; empty ones stay 0."""
    return np.concatenate([np.asarray(_scaled(rows[batch])) for batch in _batches(len(rows))])


def fit(texts: Sequence[str], num_tokens: int) -> Vectorizer:
    """Returns a vectorizer that knows the most frequent tokens of `texts`; its rows are not scaled.

    Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/TextVectorization (adapt, tf_idf).
    """
    layer = _text_layer(num_tokens)
    layer.adapt(tf.data.Dataset.from_tensor_slices(list(texts)).batch(_TEXTS_PER_BATCH))
    vocabulary = tuple(str(token) for token in layer.get_vocabulary())
    return Vectorizer(vocabulary, _idf_weights(layer, vocabulary), num_tokens, unit_length=False)


def _batches(length: int) -> Iterator[slice]:
    for start in range(0, length, _TEXTS_PER_BATCH):
        yield slice(start, start + _TEXTS_PER_BATCH)


def _scaled(rows: Any) -> Any:
    exact = tf.cast(rows, tf.float64)
    lengths = tf.sqrt(tf.reduce_sum(tf.square(exact), axis=1, keepdims=True))
    return tf.cast(tf.math.divide_no_nan(exact, lengths), tf.float32)


def library_versions() -> dict[str, str]:
    """Returns the versions of the libraries whose text layer does the work."""
    return {"tensorflow": str(tf.__version__), "keras": str(tf.keras.__version__)}


def _text_layer(num_tokens: int) -> Any:
    return tf.keras.layers.TextVectorization(
        max_tokens=num_tokens, output_mode="tf_idf", pad_to_max_tokens=True
    )


def _idf_weights(layer: Any, vocabulary: Sequence[str]) -> npt.NDArray[np.float32]:
    """Returns the weights by asking the layer for texts of one token each: it has no public name for them."""
    unknown = next(text for length in itertools.count(1) if (text := "z" * length) not in vocabulary)
    rows = np.asarray(layer(tf.constant([unknown, *vocabulary[1:]])))
    return rows[np.arange(len(vocabulary)), np.arange(len(vocabulary))]
