"""From texts to rows of numbers: tf-idf, the preprocessing step before a dense model."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.data.disk_cache import Arrays
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

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
        return tf.math.divide_no_nan(rows, tf.norm(rows, axis=1, keepdims=True)) if self.unit_length else rows


def fit(texts: Sequence[str], num_tokens: int) -> Arrays:
    """Returns the tables of the tf-idf of `texts`: "vocabulary" and "idf_weights".

    Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/TextVectorization (adapt, tf_idf).
    """
    layer = _text_layer(num_tokens)
    layer.adapt(tf.data.Dataset.from_tensor_slices(list(texts)).batch(_TEXTS_PER_BATCH))
    vocabulary = [str(token) for token in layer.get_vocabulary()]
    return {"vocabulary": _pack_strings(vocabulary), "idf_weights": _idf_weights(layer, vocabulary)}


def sparse_rows(tables: Arrays, texts: Sequence[str], num_tokens: int) -> Arrays:
    """Returns what is not zero in the rows of `texts`: "values", "columns" and "counts", one a text."""
    vectorizer = from_tables(tables, num_tokens, unit_length=False)
    column_type = np.min_scalar_type(num_tokens)
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        dense = vectorizer(texts[start : start + _TEXTS_PER_BATCH])
        rows, columns = np.nonzero(dense)
        counts = np.bincount(rows, minlength=len(dense)).astype(np.int32)
        parts.append((dense[rows, columns], columns.astype(column_type), counts))
    names = ("values", "columns", "counts")
    return {name: np.concatenate(part) for name, part in zip(names, zip(*parts, strict=True), strict=True)}


def dense_rows(sparse: Arrays, num_tokens: int, *, unit_length: bool) -> npt.NDArray[np.float32]:
    """Returns the rows of `sparse_rows`, scaled if asked for: `[num_texts, num_tokens] global`, float32."""
    num_texts = len(sparse["counts"])
    rows = np.repeat(np.arange(num_texts), sparse["counts"])
    values = sparse["values"]
    if unit_length:
        squares = np.bincount(rows, weights=np.square(values, dtype=np.float64), minlength=num_texts)
        values = (values / np.sqrt(squares)[rows]).astype(np.float32)
    dense = np.zeros((num_texts, num_tokens), np.float32)
    dense[rows, sparse["columns"]] = values
    return dense


def from_tables(tables: Arrays, num_tokens: int, *, unit_length: bool) -> Vectorizer:
    """Returns the vectorizer with the tables that `fit` found."""
    vocabulary = tuple(json.loads(tables["vocabulary"].tobytes()))
    return Vectorizer(vocabulary, tables["idf_weights"], num_tokens, unit_length)


def library_versions() -> dict[str, str]:
    """Returns the versions of the libraries whose text layer does the work."""
    return {"tensorflow": str(tf.__version__), "keras": str(tf.keras.__version__)}


def _text_layer(num_tokens: int) -> Any:
    return tf.keras.layers.TextVectorization(
        max_tokens=num_tokens, output_mode="tf_idf", pad_to_max_tokens=True
    )


def _idf_weights(layer: Any, vocabulary: list[str]) -> npt.NDArray[np.float32]:
    """Returns the weights by asking the layer for texts of one token each: it has no public name for them."""
    unknown = next(text for length in itertools.count(1) if (text := "z" * length) not in vocabulary)
    rows = np.asarray(layer(tf.constant([unknown, *vocabulary[1:]])))
    return rows[np.arange(len(vocabulary)), np.arange(len(vocabulary))]


def _pack_strings(strings: list[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(strings).encode(), np.uint8)
