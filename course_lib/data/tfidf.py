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
from course_lib.specs.text_path import TextPath

tf = start_tensorflow()

_PUNCTUATION = r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']"""
_TEXTS_PER_BATCH = 2_048  # a batch of dense rows at a time, then only what is not zero is kept


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

    def path(self, text: str, sizes: Sequence[int]) -> TextPath:
        """Returns the way of a text to its row, and on through layers of these sizes.

        Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/TextVectorization (standardize,
        split).
        """
        plain = tf.strings.regex_replace(tf.strings.lower(text), _PUNCTUATION, "")
        tokens = tuple(token.decode() for token in tf.strings.split(plain).numpy())
        places = {token: column for column, token in enumerate(self.vocabulary)}
        columns = tuple(places.get(token, 0) for token in tokens)
        return TextPath(text, tokens, columns, tuple(self([text])[0].tolist()), tuple(sizes))


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


@dataclass(frozen=True)
class Tables:
    """The tf-idf of some texts: the tokens that were found in them, and what is not zero in their rows.

    Attributes:
        vocabulary: `[tokens] global`, strings: as `Vectorizer.vocabulary`.
        idf_weights: `[tokens] global`, float32: as `Vectorizer.idf_weights`.
        values: what is not zero, row by row, `[values] global`, float32.
        columns: the column of each value, `[values] global`.
        counts: how many values each row has, `[texts] global`.
    """

    vocabulary: npt.NDArray[np.str_]
    idf_weights: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    columns: npt.NDArray[np.unsignedinteger[Any]]
    counts: npt.NDArray[np.int32]

    def vectorizer(self, num_tokens: int, *, unit_length: bool) -> Vectorizer:
        """Returns the vectorizer that knows these tokens."""
        return Vectorizer(tuple(self.vocabulary.tolist()), self.idf_weights, num_tokens, unit_length)

    def rows(self, num_tokens: int, *, unit_length: bool) -> npt.NDArray[np.float32]:
        """Returns the rows of all texts, scaled if asked for: `[texts, num_tokens] global`."""
        num_texts = len(self.counts)
        rows, values = np.repeat(np.arange(num_texts), self.counts), self.values
        if unit_length:
            squares = np.bincount(rows, weights=np.square(values, dtype=np.float64), minlength=num_texts)
            values = (values / np.sqrt(squares)[rows]).astype(np.float32)
        dense = np.zeros((num_texts, num_tokens), np.float32)
        dense[rows, self.columns] = values
        return dense


def _scaled(rows: Any) -> Any:
    """Returns the rows scaled to length 1, in float64 as `Tables.rows` does it: so both round alike."""
    exact = tf.cast(rows, tf.float64)
    lengths = tf.sqrt(tf.reduce_sum(tf.square(exact), axis=1, keepdims=True))
    return tf.cast(tf.math.divide_no_nan(exact, lengths), tf.float32)


def make_tables(train: Sequence[str], test: Sequence[str], num_tokens: int) -> Tables:
    """Returns the tables of both splits, `train` first; the tokens are those of `train` alone."""
    vectorizer = fit(train, num_tokens)
    parts = [_not_zero(vectorizer(texts), num_tokens) for split in (train, test) for texts in _batches(split)]
    values, columns, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Tables(np.array(vectorizer.vocabulary), vectorizer.idf_weights, values, columns, counts)


def fit(texts: Sequence[str], num_tokens: int) -> Vectorizer:
    """Returns a vectorizer that knows the most frequent tokens of `texts`; its rows are not scaled.

    Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/TextVectorization (adapt, tf_idf).
    """
    layer = _text_layer(num_tokens)
    layer.adapt(tf.data.Dataset.from_tensor_slices(list(texts)).batch(_TEXTS_PER_BATCH))
    vocabulary = tuple(str(token) for token in layer.get_vocabulary())
    return Vectorizer(vocabulary, _idf_weights(layer, vocabulary), num_tokens, unit_length=False)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        yield texts[start : start + _TEXTS_PER_BATCH]


def _not_zero(dense: npt.NDArray[np.float32], num_tokens: int) -> tuple[npt.NDArray[Any], ...]:
    rows, columns = np.nonzero(dense)
    counts = np.bincount(rows, minlength=len(dense)).astype(np.int32)
    return dense[rows, columns], columns.astype(np.min_scalar_type(num_tokens)), counts


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
