"""Reviews as rows of tf-idf: right, the same from the cache, and never from a damaged one."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError, i18n, start_tensorflow
from course_lib.data import imdb as data
from course_lib.data import tfidf
from course_lib.data.text import Reviews, TextExamples
from course_lib.errors import CourseWarning

tf = start_tensorflow()

NUM_TOKENS = 40


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(i18n.SOURCE_LANGUAGE)


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("COURSE_DATA", raising=False)
    return tmp_path / "cache"


def some(texts):
    return TextExamples(tuple(texts), np.arange(len(texts), dtype=np.int64) % 2)


@pytest.fixture(scope="module")
def all_reviews():
    return data.load_imdb()


@pytest.fixture(scope="module")
def reviews(all_reviews):
    """Returns a few of the reviews, and texts that have nothing to count."""
    train, test = all_reviews.train.texts[:300], all_reviews.test.texts[:50]
    return Reviews(
        "built-in", some([*train, "", "... !?"]), some([*test, "", "zzz unseen", "naïve 映画 film"])
    )


def assert_equal_bits(first, second):
    for split in ("train", "test"):
        one, other = getattr(first, split), getattr(second, split)
        assert one.features.dtype == other.features.dtype == np.float32
        assert one.features.shape == other.features.shape
        assert one.features.tobytes() == other.features.tobytes()
        assert one.labels.tolist() == other.labels.tolist()
    assert first.vectorizer.vocabulary == second.vectorizer.vocabulary
    assert first.vectorizer.idf_weights.tobytes() == second.vectorizer.idf_weights.tobytes()


def forbid_fitting(monkeypatch):
    def refuse(*_arguments):
        raise AssertionError("the vectorizer was fitted again")

    monkeypatch.setattr(tfidf, "fit", refuse)


def count_fits(monkeypatch):
    calls = []
    fit = tfidf.fit
    monkeypatch.setattr(tfidf, "fit", lambda *arguments: (calls.append(1), fit(*arguments))[1])
    return calls


# --- Where the reviews come from


def test_built_in_reviews_are_the_default(all_reviews):
    assert all_reviews.source == "built-in"
    assert (len(all_reviews.train), len(all_reviews.test)) == (8_100, 2_000)
    assert all_reviews.train.labels.dtype == np.int64


def test_the_argument_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("COURSE_DATA", "tfds")
    assert data.load_imdb("built-in").source == "built-in"
    monkeypatch.setattr(data, "_load_real", lambda: (some(["real"]), some(["real too"])))
    assert data.load_imdb().source == "tfds"


@pytest.mark.parametrize("where", ["argument", "environment"])
def test_an_unknown_source_is_refused(monkeypatch, language, where):
    monkeypatch.setenv("COURSE_DATA", "imdb")
    with pytest.raises(CourseError) as caught:
        data.load_imdb("imdb" if where == "argument" else None)
    message = str(caught.value)
    assert "'imdb'" in message
    assert "built-in" in message
    assert "tfds" in message
    assert "COURSE_DATA" in message


# --- The rows


def test_rows_are_tf_idf_as_numpy_has_it(reviews):
    """Frequent tokens in columns 1 on, others in column 0; weights log(1 + texts / (1 + texts with it))."""
    rows = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False, cache=False)
    counts = [Counter(tokens(text)) for text in reviews.train.texts]
    totals = sum(counts, Counter())
    vocabulary = rows.vectorizer.vocabulary
    assert vocabulary[0] == "[UNK]"
    assert len(vocabulary) == NUM_TOKENS
    least = min(totals[token] for token in vocabulary[1:])
    assert {token for token, count in totals.items() if count > least} <= set(vocabulary)
    assert [totals[token] for token in vocabulary[1:]] == sorted(
        (totals[token] for token in vocabulary[1:]), reverse=True
    )
    weights = [
        np.log(1 + len(counts) / (1 + sum(token in count for count in counts))) for token in vocabulary[1:]
    ]
    weights = np.array([np.mean(weights), *weights])
    for texts, features in (
        (reviews.train.texts, rows.train.features),
        (reviews.test.texts, rows.test.features),
    ):
        expected = np.zeros((len(texts), NUM_TOKENS))
        for row, text in enumerate(texts):
            for token in tokens(text):
                expected[row, vocabulary.index(token) if token in vocabulary[1:] else 0] += 1
        np.testing.assert_allclose(features, expected * weights, rtol=1e-5)


def tokens(text: str) -> list[str]:
    return re.sub(r'[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~\']', "", text.lower()).split()


def test_rows_are_what_the_text_layer_says_bit_for_bit(reviews):
    layer = tf.keras.layers.TextVectorization(
        max_tokens=NUM_TOKENS, output_mode="tf_idf", pad_to_max_tokens=True
    )
    layer.adapt(tf.constant(reviews.train.texts))
    rows = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False, cache=False)
    assert rows.train.features.tobytes() == np.asarray(layer(tf.constant(reviews.train.texts))).tobytes()
    assert rows.test.features.tobytes() == np.asarray(layer(tf.constant(reviews.test.texts))).tobytes()


def test_unit_rows_point_where_the_others_do_and_have_length_one(reviews):
    raw = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False).train.features
    unit = data.tf_idf(reviews, num_tokens=NUM_TOKENS).train.features
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert (lengths[-2:] == 0).all()
    np.testing.assert_allclose(unit * np.where(lengths > 0, lengths, 1), raw, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), (lengths > 0)[:, 0], rtol=1e-5)


def test_columns_beyond_the_vocabulary_are_there_and_empty(reviews):
    tiny = Reviews("built-in", some(["good film", "bad film"]), some(["good", "other"]))
    rows = data.tf_idf(tiny, num_tokens=1200)
    assert rows.train.features.shape == (2, 1200)
    assert rows.vectorizer.vocabulary[:2] == ("[UNK]", "film")
    assert not rows.train.features[:, 4:].any()
    assert rows.test.features[1, 0] == 1  # the unknown word, alone, at unit length


@pytest.mark.parametrize("num_tokens", [1, 0, -3, 2.5, True, "1200", 10**9])
def test_an_impossible_number_of_tokens_is_refused(reviews, language, num_tokens):
    with pytest.raises(CourseError) as caught:
        data.tf_idf(reviews, num_tokens=num_tokens)
    assert repr(num_tokens) in str(caught.value)
    assert "50000" in str(caught.value)


# --- The vectorizer by itself


@pytest.mark.parametrize("unit_length", [True, False])
def test_the_vectorizer_makes_the_rows_again(reviews, unit_length):
    rows = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=unit_length)
    again = rows.vectorizer(reviews.test.texts)
    assert again.tobytes() == rows.test.features.tobytes()


def test_a_text_alone_has_the_row_that_it_has_in_any_batch(reviews):
    made_by = data.tf_idf(reviews, num_tokens=NUM_TOKENS).vectorizer
    together = made_by(reviews.test.texts)
    alone = np.concatenate([made_by([text]) for text in reviews.test.texts])
    assert alone.tobytes() == together.tobytes()


def test_the_vectorizer_is_served_from_a_saved_model(reviews, tmp_path):
    made_by = data.tf_idf(reviews, num_tokens=NUM_TOKENS).vectorizer

    class Served(tf.Module):
        def __init__(self):
            super().__init__()
            self.rows_of = made_by.module

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, texts):
            return self.rows_of(texts)

    tf.saved_model.save(Served(), str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    served = np.asarray(loaded.serve(tf.constant(reviews.test.texts)))
    assert served.tobytes() == made_by(reviews.test.texts).tobytes()
    assert served.any()


# --- The cache


def test_the_second_start_is_the_first_bit_for_bit_and_fits_nothing(reviews, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CourseWarning)
        first = data.tf_idf(reviews, num_tokens=NUM_TOKENS)
        raw = data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False, cache=False)
        forbid_fitting(monkeypatch)
        assert_equal_bits(data.tf_idf(reviews, num_tokens=NUM_TOKENS), first)
        assert_equal_bits(data.tf_idf(reviews, num_tokens=NUM_TOKENS, unit_length=False), raw)


def test_labels_are_never_taken_from_the_cache(reviews, monkeypatch):
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    forbid_fitting(monkeypatch)
    flipped = TextExamples(reviews.train.texts, 1 - reviews.train.labels)
    rows = data.tf_idf(dataclasses.replace(reviews, train=flipped), num_tokens=NUM_TOKENS)
    assert rows.train.labels.tolist() == flipped.labels.tolist()


def test_whatever_the_rows_depend_on_makes_a_new_entry(reviews, monkeypatch):
    fits = count_fits(monkeypatch)
    longer = some([*reviews.train.texts, "one more"])
    other_border = some([*reviews.test.texts[:-2], *("".join(reviews.test.texts[-2:]), "")])
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    data.tf_idf(reviews, num_tokens=NUM_TOKENS + 1)
    data.tf_idf(dataclasses.replace(reviews, train=longer), num_tokens=NUM_TOKENS)
    data.tf_idf(dataclasses.replace(reviews, test=other_border), num_tokens=NUM_TOKENS)
    data.tf_idf(dataclasses.replace(reviews, source="tfds"), num_tokens=NUM_TOKENS)
    monkeypatch.setattr(tfidf, "library_versions", lambda: {"tensorflow": "0", "keras": "0"})
    data.tf_idf(reviews, num_tokens=NUM_TOKENS)
    assert len(fits) == 6


def test_without_the_cache_nothing_is_written(reviews, cache_folder):
    data.tf_idf(reviews, num_tokens=NUM_TOKENS, cache=False)
    assert not cache_folder.exists()


@pytest.fixture(scope="module")
def small():
    return Reviews("built-in", some(["a good film", "a bad film", "good good"]), some(["bad", "good a"]))


@given(at=st.floats(0, 1, exclude_max=True), cut=st.booleans())
@settings(max_examples=12, deadline=None)
def test_a_damaged_cache_is_made_again(small, tmp_path_factory, at, cut):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("COURSE_CACHE_DIR", str(folder))
        first = data.tf_idf(small, num_tokens=8)
        (file,) = folder.glob("*.cache")
        content = bytearray(file.read_bytes())
        place = int(at * len(content))
        content[place] ^= 255
        file.write_bytes(content[:place] if cut else content)
        assert_equal_bits(data.tf_idf(small, num_tokens=8), first)
        forbid_fitting(patch)
        assert_equal_bits(data.tf_idf(small, num_tokens=8), first)


def test_an_unwritable_cache_folder_only_costs_time(small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.warns(CourseWarning, match="COURSE_CACHE_DIR"):
        rows = data.tf_idf(small, num_tokens=8)
    assert_equal_bits(rows, data.tf_idf(small, num_tokens=8, cache=False))
