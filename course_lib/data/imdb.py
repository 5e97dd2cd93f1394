"""Film reviews, the stand-in or real ones, as texts and as rows of numbers that are kept on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from course_lib.data import disk_cache
from course_lib.data.examples import Examples
from course_lib.data.sources import REAL, RealSet, choose_source, open_built_in
from course_lib.data.text import Reviews, TextExamples
from course_lib.runtime import start_tensorflow

if TYPE_CHECKING:  # the reviews themselves need no TensorFlow, only what makes numbers of them does
    from course_lib.data.tfidf import Vectorizer

NUM_TOKENS = 1200
REAL_SET = RealSet(
    "imdb_reviews/plain_text", "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
)

_RECORDS_PER_BATCH = 5_000
_FORMAT = 5  # one more whenever the preprocessing or what is kept of it changes


@dataclass(frozen=True)
class VectorizedReviews:
    """Film reviews as rows of tf-idf.

    Attributes:
        train: the rows to learn from, `[num_reviews, num_tokens] global`.
        test: the rows to measure on.
        vectorizer: what made them of texts; it knows the training texts only.
    """

    train: Examples
    test: Examples
    vectorizer: Vectorizer


def load_imdb(source: str | None = None) -> Reviews:
    """Returns film reviews with their labels, from the stand-in or from the real IMDB set.

    Args:
        source: "built-in" for the stand-in that comes with the library, "tfds" for the real reviews. If
            left out, the environment variable COURSE_DATA says it, and "built-in" if that is not set.

    Raises:
        CourseError: an unknown source; or the real set is missing with no network.

    Source: https://www.tensorflow.org/datasets/catalog/imdb_reviews
    """
    chosen = choose_source(source)
    train, test = _read_real() if chosen == REAL else _read_stand_in()
    return Reviews(chosen, train, test)


def tf_idf(reviews: Reviews, *, num_tokens: int = NUM_TOKENS, unit_length: bool = True) -> VectorizedReviews:
    """Returns the reviews as rows of tf-idf, and the vectorizer that made them.

    The vectorizer learns its tokens and their weights from the training texts. With 25,000 reviews that takes
    a while, so the outcome is kept on disk and used when nothing that it depends on has changed.

    Args:
        reviews: the texts.
        num_tokens: the number of columns: the most frequent tokens, and one column for all others.
        unit_length: whether each row is scaled to length 1.
    """
    vectorizer, rows = _vectorized(reviews, num_tokens)
    if unit_length:
        from course_lib.data.tfidf import unit_rows

        vectorizer, rows = replace(vectorizer, unit_length=True), unit_rows(rows)
    num_train = len(reviews.train)
    return VectorizedReviews(
        Examples(rows[:num_train], reviews.train.labels),
        Examples(rows[num_train:], reviews.test.labels),
        vectorizer,
    )


def _read_stand_in() -> tuple[TextExamples, ...]:
    with open_built_in("reviews.json") as file:
        splits = json.load(file)
    return tuple(
        TextExamples(tuple(splits[split]["texts"]), np.array(splits[split]["labels"], np.int64))
        for split in ("train", "test")
    )


def _read_real() -> tuple[TextExamples, ...]:
    builder = REAL_SET.builder()
    return tuple(_read_split(builder, split) for split in ("train", "test"))


def _read_split(builder: Any, split: str) -> TextExamples:
    batches = list(_batches(builder, split).as_numpy_iterator())
    texts = tuple(text.decode("utf-8") for batch in batches for text in batch["text"])
    return TextExamples(texts, np.concatenate([batch["label"] for batch in batches]))


def _batches(builder: Any, split: str) -> Any:
    """Returns a data set of batches, parsed whole: seven times as fast as a record at a time."""
    if builder.info.file_format.value != "tfrecord":
        return builder.as_dataset(split=split, batch_size=_RECORDS_PER_BATCH)
    tf = start_tensorflow()
    records = tf.data.TFRecordDataset([str(file) for file in builder.info.splits[split].filepaths])
    spec = {"text": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    return records.batch(_RECORDS_PER_BATCH).map(lambda batch: tf.io.parse_example(batch, spec))


def _vectorized(reviews: Reviews, num_tokens: int) -> tuple[Vectorizer, npt.NDArray[np.float32]]:
    """Returns the vectorizer and the rows of both splits, not scaled; from the cache if it has them."""
    from course_lib.data import tfidf

    depends_on = {
        "format": _FORMAT,
        "num_tokens": num_tokens,
        "texts": [reviews.train.fingerprint(), reviews.test.fingerprint()],
        "versions": tfidf.library_versions(),
    }
    key, num_texts = json.dumps(depends_on, sort_keys=True), len(reviews.train) + len(reviews.test)
    if (kept := disk_cache.load(key)) is not None:
        rows = np.zeros((num_texts, num_tokens), np.float32)
        rows.put(kept["places"], kept["values"])
        vocabulary = tuple(kept["vocabulary"].tolist())
        return tfidf.Vectorizer(vocabulary, kept["idf_weights"], num_tokens, unit_length=False), rows
    vectorizer = tfidf.fit(reviews.train.texts, num_tokens)
    rows = tfidf.rows_of(vectorizer, reviews.train.texts + reviews.test.texts)
    places = np.flatnonzero(rows)
    kept = {"places": places.astype(np.min_scalar_type(rows.size)), "values": rows.take(places)}
    kept |= {"vocabulary": np.array(vectorizer.vocabulary), "idf_weights": vectorizer.idf_weights}
    disk_cache.store(key, kept)
    return vectorizer, rows
