"""The stand-ins that come with the library: bit for bit the same, and there without TensorFlow."""

from __future__ import annotations

import hashlib
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from course_lib import CourseError, data
from course_lib.data import sources

FOLDER = Path(sources.__file__).with_name("built_in")
# Other reviews or images mean other numbers in the lessons: then run `make notebooks` and `make results`.
REVIEWS = "fc23bd50fb9788026f3c04932053925cc7a679b1e1b495808213d2759d9db839"
FIRST_3000 = {
    data.load_mnist: "67056fc069744854ebaabd09297284042df07fdba396342946f5f6d3e2380b2c",
    data.load_fashion: "daca89f963d70ef8f4d6c3fcb8355a36c2c98d13cd89ef13dab70f6673431c1b",
}


@pytest.fixture(autouse=True)
def no_source_in_the_environment(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_reviews_are_pinned_bit_for_bit():
    reviews = data.load_imdb()
    splits = tuple((part.texts, tuple(part.labels.tolist())) for part in (reviews.train, reviews.test))
    assert sha256(repr(splits).encode()) == REVIEWS
    assert (len(reviews.train), len(reviews.test)) == (8_100, 2_000)


@pytest.mark.parametrize("load", FIRST_3000)
def test_images_are_pinned_bit_for_bit_and_scaled(load):
    loaded = load(num_train=3_000)
    train = loaded.train
    assert (train.images.dtype, train.features.dtype) == (np.uint8, np.float32)
    assert sha256(train.images.tobytes() + train.labels.tobytes()) == FIRST_3000[load]
    assert np.array_equal(train.features.ravel() * np.float32(255), train.images.ravel())
    every = {image.tobytes() for part in (train, loaded.test) for image in part.images}
    assert len(every) == 8_000


def test_digits_are_rows_and_garments_have_a_channel():
    shapes = [load(num_train=2, num_test=1).train.features.shape for load in FIRST_3000]
    assert shapes == [(2, 784), (2, 28, 28, 1)]


def test_every_file_has_the_hash_that_the_tool_wrote():
    lines = (FOLDER / "SHA256SUMS").read_text("utf-8").splitlines()
    found = {path.stem: sha256(lzma.decompress(path.read_bytes())) for path in FOLDER.glob("*.xz")}
    assert found == {name: digest for digest, name in map(str.split, lines)}


def test_they_need_no_tensorflow():
    code = (
        "import sys; from course_lib import data;"
        "data.load_imdb(), data.load_mnist(), data.load_fashion(); print('tensorflow' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "False"


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
