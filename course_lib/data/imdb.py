"""Film reviews, the stand-in or the real ones of IMDB, as texts and as rows of tf-idf."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from course_lib.data.examples import Examples, Splits
from course_lib.data.sources import REAL, RealSet, choose_source, open_built_in
from course_lib.runtime import start_tensorflow

NUM_TOKENS = 1200
IMDB = RealSet("imdb_reviews/plain_text", "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz")
_TEXTS_PER_BATCH = 2_048

Rows = npt.NDArray[np.float32]


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


def load_imdb(source: str | None = None) -> Splits[TextExamples]:
    """Returns film reviews, labelled 1 if good and 0 if bad: the stand-in, or the real IMDB set.

    Args:
        source: "built-in" for the stand-in that comes with the library, "tfds" for the real reviews. If
            left out, the environment variable COURSE_DATA says it, and "built-in" if that is not set.

    Raises:
        CourseError: an unknown source; or the real set is missing with no network.

    Source: https://www.tensorflow.org/datasets/catalog/imdb_reviews
    """
    chosen = choose_source(source)
    if chosen == REAL:
        splits = [IMDB.read(split, "text") for split in ("train", "test")]
        train, test = (TextExamples(tuple(map(bytes.decode, texts)), labels) for texts, labels in splits)
        return Splits(train, test)
    with open_built_in("reviews.json") as file:
        read = json.load(file)
    train, test = (
        TextExamples(tuple(read[split]["texts"]), np.array(read[split]["labels"], np.int64))
        for split in ("train", "test")
    )
    return Splits(train, test)


def tf_idf(reviews: Splits[TextExamples], *, unit_length: bool = True) -> Splits[Examples]:
    """Returns the reviews as rows of tf-idf, `[num_reviews, 1200] global`.

    Tokens and their weights are those of the training texts. That takes seconds, with 25,000 reviews many:
    so the rows are kept on disk, and used when nothing that they depend on has changed.

    Args:
        reviews: the texts.
        unit_length: whether each row is scaled to length 1.
    """
    tf = start_tensorflow()
    depends_on = [reviews.train.texts, reviews.test.texts, NUM_TOKENS, tf.__version__, tf.keras.__version__]
    key = hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()
    rows = _kept_rows(key, reviews)
    if unit_length:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
        np.divide(rows, np.where(lengths > 0, lengths, 1), out=rows, casting="same_kind")
    train, test = np.split(rows, [len(reviews.train)])
    return Splits(Examples(train, reviews.train.labels), Examples(test, reviews.test.labels))


def text_layer(texts: tuple[str, ...]) -> Any:
    """Returns the layer that makes rows of tf-idf, not scaled, of any texts, adapted to these.

    Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/TextVectorization (adapt, tf_idf).
    """
    tf = start_tensorflow()
    layer = tf.keras.layers.TextVectorization(NUM_TOKENS, output_mode="tf_idf", pad_to_max_tokens=True)
    layer.adapt(tf.data.Dataset.from_tensor_slices(list(texts)).batch(_TEXTS_PER_BATCH))
    return layer


def _kept_rows(key: str, reviews: Splits[TextExamples]) -> Rows:
    """Returns the rows of both splits, not scaled, from the disk if it has them."""
    file = platformdirs.user_cache_path("course_lib") / f"{key}.npz"
    if file.exists():
        return np.asarray(np.load(file)["rows"])
    layer, texts = text_layer(reviews.train.texts), [*reviews.train.texts, *reviews.test.texts]
    constant, starts = start_tensorflow().constant, range(0, len(texts), _TEXTS_PER_BATCH)
    rows = np.concatenate([layer(constant(texts[at : at + _TEXTS_PER_BATCH])) for at in starts])
    with contextlib.suppress(OSError):  # without a place for them all goes on
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.npz")  # whatever interrupts, no half of a file
        np.savez_compressed(part, rows=rows)
        part.replace(file)
    return rows
