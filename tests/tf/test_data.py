"""Reviews as rows of tf-idf: right, and the same from the cache."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from course_lib import start_tensorflow
from course_lib.data import imdb as data
from course_lib.data import tfidf
from course_lib.data.text import Reviews, TextExamples

tf = start_tensorflow()

NUM_TOKENS = 40


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def some(texts):
    return TextExamples(tuple(texts), np.arange(len(texts), dtype=np.int64) % 2)


@pytest.fixture(scope="module")
def reviews():
    """Returns a few of the reviews, and texts that have nothing to count."""
    stand_in = data.load_imdb("built-in")
    train, test = stand_in.train.texts[:300], stand_in.test.texts[:50]
    return Reviews(
        "built-in", some([*train, "", "... !?"]), some([*test, "", "zzz unseen", "naïve 映画 film"])
    )


# --- The rows


def test_rows_are_what_the_text_layer_says_bit_for_bit(reviews):
    layer = tf.keras.layers.TextVectorization(
        max_tokens=NUM_TOKENS, output_mode="tf_idf", pad_to_max_tokens=True
    )
    layer.adapt(tf.constant(reviews.train.texts))
    rows = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False)
    assert rows.train.features.tobytes() == np.asarray(layer(tf.constant(reviews.train.texts))).tobytes()
    assert rows.test.features.tobytes() == np.asarray(layer(tf.constant(reviews.test.texts))).tobytes()


def test_unit_rows_point_where_the_others_do_and_have_length_one(reviews):
    raw = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False).train.features
    unit = data.tf_idf(reviews, num_tokens=NUM_TOKENS).train.features
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert (lengths[-2:] == 0).all()
    np.testing.assert_allclose(unit * np.where(lengths > 0, lengths, 1), raw, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), (lengths > 0)[:, 0], rtol=1e-5)


@pytest.mark.parametrize("unit_length", [True, False])
def test_the_vectorizer_makes_the_rows_again_of_texts_together_or_alone(reviews, unit_length):
    rows = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=unit_length)
    together = rows.vectorizer(reviews.test.texts)
    alone = np.concatenate([rows.vectorizer([text]) for text in reviews.test.texts])
    assert together.tobytes() == alone.tobytes() == rows.test.features.tobytes()


# --- The cache


def test_the_second_start_is_the_first_bit_for_bit_and_fits_nothing(reviews, monkeypatch):
    lengths = {unit: data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=unit) for unit in (True, False)}
    monkeypatch.setattr(tfidf, "fit", refuse)
    for unit_length, first in lengths.items():
        again = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=unit_length)
        for one, other in ((first.train, again.train), (first.test, again.test)):
            assert (one.features.dtype, one.features.shape) == (other.features.dtype, other.features.shape)
            assert one.features.tobytes() == other.features.tobytes()
            assert one.labels.tolist() == other.labels.tolist()
        assert first.vectorizer.vocabulary == again.vectorizer.vocabulary
        assert first.vectorizer.idf_weights.tobytes() == again.vectorizer.idf_weights.tobytes()


def refuse(*_arguments):
    raise AssertionError("the vectorizer was fitted again")


def test_labels_are_never_taken_from_the_cache(reviews):
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    flipped = TextExamples(reviews.train.texts, 1 - reviews.train.labels)
    rows = data.tf_idf(dataclasses.replace(reviews, train=flipped), num_tokens=NUM_TOKENS)
    assert rows.train.labels.tolist() == flipped.labels.tolist()


def test_whatever_the_rows_depend_on_makes_a_new_entry(reviews, monkeypatch, cache_folder):
    longer = some([*reviews.train.texts, "one more"])
    other_border = some([*reviews.test.texts[:-2], "".join(reviews.test.texts[-2:]), ""])
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    data.tf_idf(reviews, num_tokens=NUM_TOKENS + 1)
    data.tf_idf(dataclasses.replace(reviews, train=longer), num_tokens=NUM_TOKENS)
    data.tf_idf(dataclasses.replace(reviews, test=other_border), num_tokens=NUM_TOKENS)
    monkeypatch.setattr(tfidf, "library_versions", lambda: {"tensorflow": "0", "keras": "0"})
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    assert len(list(cache_folder.iterdir())) == 5


def test_a_damaged_or_unwritable_cache_only_costs_time(reviews, monkeypatch, cache_folder):
    first = data.tf_idf(reviews, num_tokens=NUM_TOKENS).train.features.tobytes()
    (file,) = cache_folder.iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    assert data.tf_idf(reviews, num_tokens=NUM_TOKENS).train.features.tobytes() == first
    monkeypatch.setenv("COURSE_CACHE_DIR", str(file / "below a file"))
    assert data.tf_idf(reviews, num_tokens=NUM_TOKENS).train.features.tobytes() == first
