"""Film reviews, as texts and as rows of numbers: made here or real, vectorised once and kept on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from course_lib.data import disk_cache
from course_lib.data.examples import Examples
from course_lib.data.sources import REAL, choose_source
from course_lib.data.synthetic import make_reviews
from course_lib.data.text import Reviews, TextExamples
from course_lib.errors import whole_number
from course_lib.i18n import _

if TYPE_CHECKING:  # the reviews themselves need no TensorFlow, only what makes numbers of them does
    from course_lib.data.tfidf import Tables, Vectorizer

NUM_TOKENS = 1200
MOST_TOKENS = 50_000

_TABLES_FORMAT = 3  # one more whenever the preprocessing or what is kept of it changes


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
        source: "built-in" for the stand-in that the library writes itself, "tfds" for the real reviews. If
            left out, the environment variable COURSE_DATA says it, and "built-in" if that is not set.

    Raises:
        CourseError: an unknown source; or the real set is missing with no network, or damaged.
    """
    chosen = choose_source(source)
    train, test = _load_real() if chosen == REAL else _make_stand_in()
    return Reviews(chosen, train, test)


def tf_idf(
    reviews: Reviews, *, num_tokens: int = NUM_TOKENS, unit_length: bool = True, cache: bool = True
) -> VectorizedReviews:
    """Returns the reviews as rows of tf-idf, and the vectorizer that made them.

    The vectorizer learns its tokens and their weights from the training texts. With 25,000 reviews that takes
    a while, so the outcome is kept on disk and used when nothing that it depends on has changed.

    Args:
        reviews: the texts.
        num_tokens: the number of columns: the most frequent tokens, and one column for all others.
        unit_length: whether each row is scaled to length 1.
        cache: whether to use and keep the outcome of an earlier start.

    Raises:
        CourseError: an impossible number of tokens.
    """
    columns = whole_number(
        num_tokens,
        _("{num_tokens!r} cannot be the number of a row's columns.", num_tokens=num_tokens),
        least=2,
        most=MOST_TOKENS,
        cure=_("The lessons use {usual}.", usual=NUM_TOKENS),
    )
    tables = _tables(reviews, columns, cache=cache)
    rows = tables.rows(columns, unit_length=unit_length)
    num_train = len(reviews.train)
    return VectorizedReviews(
        Examples(rows[:num_train], reviews.train.labels),
        Examples(rows[num_train:], reviews.test.labels),
        tables.vectorizer(columns, unit_length=unit_length),
    )


def _make_stand_in() -> tuple[TextExamples, TextExamples]:
    (train, train_labels), (test, test_labels) = make_reviews()
    return (
        TextExamples(train, np.array(train_labels, np.int64)),
        TextExamples(test, np.array(test_labels, np.int64)),
    )


def _load_real() -> tuple[TextExamples, TextExamples]:
    from course_lib.data.real_reviews import load_real_reviews

    return load_real_reviews()


def _tables(reviews: Reviews, num_tokens: int, *, cache: bool) -> Tables:
    """Returns the tables of both splits, from the cache if it has them."""
    from course_lib.data import tfidf

    key = _cache_key(reviews, num_tokens)
    if cache and (kept := disk_cache.load(key)) is not None:
        return tfidf.Tables(**kept)
    tables = tfidf.make_tables(reviews.train.texts, reviews.test.texts, num_tokens)
    if cache:
        disk_cache.store(key, vars(tables))
    return tables


def _cache_key(reviews: Reviews, num_tokens: int) -> str:
    """Returns a text that names everything on which the tables depend."""
    from course_lib.data.tfidf import library_versions

    depends_on = {
        "format": _TABLES_FORMAT,
        "source": reviews.source,
        "num_tokens": num_tokens,
        "texts": [reviews.train.fingerprint(), reviews.test.fingerprint()],
        "versions": library_versions(),
    }
    return json.dumps(depends_on, sort_keys=True)
