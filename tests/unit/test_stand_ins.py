"""The stand-ins that come with the library: bit for bit the same, and there without TensorFlow."""

from __future__ import annotations

import hashlib
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.data import fashion, imdb, mnist, sources
from course_lib.data.images import ImagesWithChannel

FOLDER = Path(sources.__file__).with_name("built_in")
# Other reviews or images mean other numbers in the lessons: then run `make notebooks` and `make results`.
REVIEWS = "fc23bd50fb9788026f3c04932053925cc7a679b1e1b495808213d2759d9db839"
FIRST_3000 = {
    "mnist": "67056fc069744854ebaabd09297284042df07fdba396342946f5f6d3e2380b2c",
    "fashion": "daca89f963d70ef8f4d6c3fcb8355a36c2c98d13cd89ef13dab70f6673431c1b",
}
LOADERS = {"imdb": imdb.load_imdb, "mnist": mnist.load_mnist, "fashion": fashion.load_fashion}


@pytest.fixture(autouse=True)
def no_source_in_the_environment(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_reviews_are_pinned_bit_for_bit():
    reviews = imdb.load_imdb()
    splits = tuple((part.texts, tuple(part.labels.tolist())) for part in (reviews.train, reviews.test))
    assert sha256(repr(splits).encode()) == REVIEWS
    assert reviews.source == "built-in"
    assert (len(reviews.train), len(reviews.test)) == (8_100, 2_000)
    assert reviews.train.labels.dtype == np.int64


@pytest.mark.parametrize("images", FIRST_3000)
def test_images_are_pinned_bit_for_bit(images):
    train = LOADERS[images](num_train=3_000).train
    assert (train.images.dtype, train.labels.dtype) == (np.uint8, np.int64)
    assert sha256(train.images.tobytes() + train.labels.tobytes()) == FIRST_3000[images]


def test_every_file_has_the_hash_that_the_tool_wrote():
    lines = (FOLDER / "SHA256SUMS").read_text("utf-8").splitlines()
    found = {path.stem: sha256(lzma.decompress(path.read_bytes())) for path in FOLDER.glob("*.xz")}
    assert found == {name: digest for digest, name in map(str.split, lines)}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 5_000_000


def test_they_need_no_tensorflow():
    code = (
        "import sys; from course_lib.data import fashion, imdb, mnist;"
        "imdb.load_imdb(), mnist.load_mnist(), fashion.load_fashion(); print('tensorflow' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("images", FIRST_3000)
def test_5000_images_to_learn_from_and_5000_others_to_measure_on(images):
    loaded = LOADERS[images]()
    assert loaded.source == "built-in"
    assert (len(loaded.train), len(loaded.test)) == (5_000, 5_000)
    every = [image.tobytes() for part in (loaded.train, loaded.test) for image in part.images]
    assert len(set(every)) == 10_000
    few = LOADERS[images](num_train=20, num_test=10)
    assert np.array_equal(few.train.images, loaded.train.images[:20])
    assert np.array_equal(few.test.labels, loaded.test.labels[:10])


def test_garments_have_a_channel_and_keep_it():
    train = fashion.load_fashion(num_train=30, num_test=1).train
    assert (train.features.dtype, train.features.shape) == (np.float32, (30, 28, 28, 1))
    assert np.array_equal(np.rint(train.features[..., 0] * 255), train.images)
    kept, held_out = train.hold_out(10)
    assert isinstance(kept, ImagesWithChannel)
    assert (kept.features.shape, held_out.features.shape) == ((20, 28, 28, 1), (10, 28, 28, 1))


def test_ten_classes_have_names_in_the_readers_language(language):
    assert len(set(fashion.class_names())) == 10
    assert fashion.class_names()[7] == {"en": "sneaker", "ja": "スニーカー"}[language]


@pytest.mark.parametrize("count", [0, 5_001, 2.5, True, "5000"])
def test_an_impossible_number_of_images_is_refused(language, count):
    for counts in ({"num_train": count}, {"num_test": count}):
        with pytest.raises(CourseError) as caught:
            mnist.load_mnist("built-in", **counts)
        assert repr(count) in caught.value.problem
        assert "5000" in caught.value.allowed
        assert '"tfds"' in caught.value.cure


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("where", ["argument", "environment"])
def test_an_unknown_source_is_refused(monkeypatch, language, name, where):
    monkeypatch.setenv("COURSE_DATA", "elsewhere")
    with pytest.raises(CourseError) as caught:
        LOADERS[name]("elsewhere" if where == "argument" else None)
    assert "'elsewhere'" in caught.value.problem
    assert all(source in caught.value.allowed for source in ("built-in", "tfds"))
    assert "COURSE_DATA" in caught.value.cure
