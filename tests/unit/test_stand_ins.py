"""The stand-ins that come with the library, what is refused, and examples that are held out."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import CourseError, data


@pytest.fixture(autouse=True)
def no_source_in_the_environment(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


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
