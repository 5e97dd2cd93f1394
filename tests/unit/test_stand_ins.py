"""The stand-ins that come with the library: bit for bit the same; what is asked for in vain is refused."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import numpy as np
import pytest

from course_lib import CourseError, data
from course_lib.data import sources

FOLDER = Path(sources.__file__).with_name("built_in")
# Of the contents, before compression. Other data mean other numbers in all lessons: then run `make notebooks`
# and `make results`.
SHA256 = {
    "reviews.json": "f5054e7d1468a8c5463f4820419bffaa6a7916e8a882a2385c58cfc37240ee1b",
    "digits-train.npy": "f314e5fcf766bded9b484bf0095315ecd773c542d0892546cf10ace7fa18da46",
    "digits-test.npy": "0d9705ff2f209d1efa1ba0116a19353bce7fa2b354037a3bb234ca46360eef95",
    "garments-train.npy": "c4443dbfefca3e5b6f8e75896e7ea71c5f94255f324b5a532a5cd9cca2ac2258",
    "garments-test.npy": "c69080a50313091602d59161ae1d564c5b7bae22ac5616761bee04d85aa82051",
}


@pytest.fixture(autouse=True)
def no_source_in_the_environment(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


def test_they_are_pinned_bit_for_bit():
    contents = {path.stem: lzma.decompress(path.read_bytes()) for path in FOLDER.glob("*.xz")}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()} == SHA256


def test_reviews_are_texts_with_labels():
    reviews = data.load_imdb()
    assert (len(reviews.train), len(reviews.test)) == (8_100, 2_000)
    assert reviews.train.labels.mean() == 0.5
    assert len({*reviews.train.texts, *reviews.test.texts}) == 10_100


@pytest.mark.parametrize("load", [data.load_mnist, data.load_fashion])
def test_images_are_as_many_as_asked_for_and_scaled(load):
    every, few = load(), load(num_train=20, num_test=10)
    assert len({image.tobytes() for part in (every.train, every.test) for image in part.images}) == 10_000
    assert np.array_equal(few.train.images, every.train.images[:20])
    assert np.array_equal(few.test.labels, every.test.labels[:10])
    assert (few.train.images.dtype, few.train.features.dtype) == (np.uint8, np.float32)
    assert np.array_equal(few.train.features.ravel() * np.float32(255), few.train.images.ravel())


@pytest.mark.parametrize("count", [0, 5_001, 2.5])
def test_an_impossible_number_of_images_is_refused(language, count):
    with pytest.raises(CourseError) as caught:
        data.load_mnist("built-in", num_test=count)
    assert repr(count) in caught.value.problem
    assert "5000" in caught.value.allowed
    assert '"tfds"' in caught.value.cure


def test_an_unknown_source_is_refused(monkeypatch, language):
    monkeypatch.setenv("COURSE_DATA", "elsewhere")
    with pytest.raises(CourseError) as caught:
        data.load_imdb()
    assert "'elsewhere'" in caught.value.problem
    assert all(source in caught.value.allowed for source in ("built-in", "tfds"))
    assert "COURSE_DATA" in caught.value.cure
