"""Reviews as rows of tf-idf: right, and the same from the disk."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib.data import imdb
from course_lib.data.examples import Splits
from course_lib.data.imdb import TextExamples


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(imdb.platformdirs, "user_cache_path", tmp_path.joinpath)
    return tmp_path / "course_lib"


def of(train, test=("zzz unseen", "")):
    return Splits(*(TextExamples(texts, np.arange(len(texts)) % 2) for texts in (tuple(train), test)))


REVIEWS = of(["Good good film!", "bad film", "a story"], ("good story", "", "naïve 映画 film"))


def test_rows_are_tf_idf_of_the_training_texts():
    """A word counts log(1 + N / (1 + n)), N texts of which n have it; column 0 is for unknown words."""
    rows = imdb.tf_idf(REVIEWS, unit_length=False)
    often, once = np.log(1 + 3 / 3), np.log(1 + 3 / 2)
    for row, expected in zip(
        rows.train.features, [(often, 2 * once), (often, once), (once, once)], strict=True
    ):
        np.testing.assert_allclose(np.sort(row[row > 0]), expected, rtol=1e-6)
    assert rows.train.features.shape == (3, 1200)
    assert np.count_nonzero(rows.test.features, axis=1).tolist() == [2, 0, 2]


def test_unit_rows_point_where_the_others_do_and_have_length_one():
    raw, unit = (imdb.tf_idf(REVIEWS, unit_length=unit).test.features for unit in (False, True))
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(unit * lengths, raw, rtol=1e-6)


def test_the_second_start_is_the_first_bit_for_bit_and_fits_nothing(monkeypatch):
    first = imdb.tf_idf(REVIEWS)
    monkeypatch.setattr(imdb, "text_layer", None)
    again = imdb.tf_idf(REVIEWS)
    for split in ("train", "test"):
        one, other = getattr(first, split), getattr(again, split)
        assert one.features.tobytes() == other.features.tobytes()
        assert one.labels.tolist() == other.labels.tolist()


def test_other_texts_or_other_borders_are_not_taken_from_the_disk(cache):
    for reviews in (REVIEWS, of(["Good good", "film!", "bad film", "a story"]), of(["Good good film!"])):
        imdb.tf_idf(reviews)
    assert len(list(cache.iterdir())) == 3


def test_without_a_place_on_the_disk_all_goes_on(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(imdb.platformdirs, "user_cache_path", lambda _name: tmp_path / "file" / "below")
    assert len(imdb.tf_idf(REVIEWS).train) == 3
