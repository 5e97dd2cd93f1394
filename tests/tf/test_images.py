"""Images: the drawn digits are hard enough for a linear model; the real sets are read as they are stored."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from course_lib import CourseError, i18n
from course_lib.data import fashion, mnist, prepared
from course_lib.data.images import ImageSet
from course_lib.training.optimizers import Adam
from course_lib.training.records import EpochRecord
from course_lib.training.run import train
from lessons.lesson_07_from_scratch.mnist_model import MLP, initial_values

PREPARED = Path(os.environ.get("TFDS_DATA_DIR") or Path(__file__).parents[3] / "shared" / "tfds").resolve()
SET = Path("mnist/3.0.1")
TEST_RECORDS = "mnist-test.tfrecord-00000-of-00001"
needs_the_set = pytest.mark.skipif(
    not (PREPARED / SET).is_dir(), reason="the real digits are not here: set TFDS_DATA_DIR to their folder"
)


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(i18n.SOURCE_LANGUAGE)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Returns a copy of the prepared set, where every file may be replaced."""
    (tmp_path / SET).mkdir(parents=True)
    for file in (PREPARED / SET).iterdir():
        (tmp_path / SET / file.name).symlink_to(file)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(prepared.RealSet, "_download", refuse_to_download)
    return tmp_path / SET


def refuse_to_download(_real_set, _builder):
    raise AssertionError("it wanted to download")


# --- The stand-in


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> ImageSet:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return mnist.load("built-in")


@pytest.fixture(scope="module")
def linear(drawn) -> float:
    """Returns the best test accuracy of softmax regression in NumPy, at any of its epochs."""
    random = np.random.default_rng(0)
    features, labels = drawn.train.features, drawn.train.labels
    weights, bias = np.zeros((784, 10), np.float32), np.zeros(10, np.float32)
    best = 0.0
    for epoch in range(40):
        rate = np.float32(0.5 / (1 + epoch / 5))
        for rows in np.array_split(random.permutation(len(labels)), len(labels) // 50):
            slopes = softmax(features[rows] @ weights + bias)
            slopes[np.arange(len(rows)), labels[rows]] -= 1
            weights -= rate / len(rows) * (features[rows].T @ slopes)
            bias -= rate / len(rows) * slopes.sum(axis=0)
        right = (drawn.test.features @ weights + bias).argmax(axis=1) == drawn.test.labels
        best = max(best, float(right.mean()))
    return best


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def test_a_linear_model_gets_85_to_93_percent(linear):
    assert 0.85 < linear < 0.93


def test_the_mlp_does_better_in_three_epochs(drawn, linear):
    model = MLP(initial_values())
    run = train(model, drawn.train, drawn.test, epochs=3, batch_size=128, optimizer=Adam(), last_batch="pad")
    *_steps, last = (record for record in run if isinstance(record, EpochRecord))
    assert last.test_accuracy > linear + 0.02


# --- The real set


@needs_the_set
def test_the_prepared_set_is_read_as_tensorflow_datasets_reads_it(folder):
    import tensorflow_datasets as tfds

    digits = mnist.load("tfds", num_train=1_000, num_test=10_000)
    assert digits.source == "tfds"
    assert (len(digits.train), len(digits.test)) == (1_000, 10_000)
    assert np.bincount(digits.test.labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
    for split, images in (("train", digits.train), ("test", digits.test)):
        theirs = tfds.load("mnist", split=split, data_dir=str(folder.parents[1]), download=False)
        for place, example in enumerate(theirs.take(200).as_numpy_iterator()):
            assert np.array_equal(images.images[place], example["image"][..., 0])
            assert images.labels[place] == example["label"]


@needs_the_set
@pytest.mark.drill
def test_all_60000_are_there_on_request(folder):
    digits = mnist.load("tfds", num_train=60_000, num_test=1)
    assert digits.train.features.shape == (60_000, 784)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(digits.train.labels).tolist() == counts


@pytest.mark.skipif(
    not (PREPARED / "fashion_mnist").is_dir(), reason="the real garments are not here: set TFDS_DATA_DIR"
)
def test_the_real_garments_are_read_as_tensorflow_datasets_reads_them(monkeypatch):
    import tensorflow_datasets as tfds

    monkeypatch.setenv("TFDS_DATA_DIR", str(PREPARED))
    garments = fashion.load("tfds", num_train=60, num_test=10_000)
    assert garments.train.features.shape == (60, 28, 28, 1)
    assert np.bincount(garments.test.labels).tolist() == [1_000] * 10
    theirs = tfds.load("fashion_mnist", split="train", data_dir=str(PREPARED), download=False)
    for place, example in enumerate(theirs.take(60).as_numpy_iterator()):
        assert np.array_equal(np.rint(garments.train.features[place] * 255), example["image"])
        assert garments.train.labels[place] == example["label"]


def replace(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


def cut_off(folder):
    replace(folder / TEST_RECORDS, (folder / TEST_RECORDS).read_bytes()[:100_000])


def cut_off_between_records(folder):
    content = (folder / TEST_RECORDS).read_bytes()
    replace(folder / TEST_RECORDS, content[: 8 + 4 + int.from_bytes(content[:8], "little") + 4])


def flip_a_bit(folder):
    content = bytearray((folder / TEST_RECORDS).read_bytes())
    content[50_000] ^= 1
    replace(folder / TEST_RECORDS, bytes(content))


def lose_the_records(folder):
    (folder / TEST_RECORDS).unlink()


def lose_the_description(folder):
    (folder / "dataset_info.json").unlink()


@needs_the_set
@pytest.mark.parametrize(
    "damage", [cut_off, cut_off_between_records, flip_a_bit, lose_the_records, lose_the_description]
)
def test_a_damaged_or_partial_set_is_refused_with_the_cure(folder, damage):
    damage(folder)
    with pytest.raises(CourseError) as caught:
        mnist.load("tfds", num_train=10)
    assert str(folder.parents[1]) in caught.value.problem
    assert "mnist" in caught.value.cure
    assert '"built-in"' in caught.value.cure


def test_no_network_is_an_error_with_the_cure(monkeypatch, tmp_path, language):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.setattr(prepared, "_ask", lambda _address: ConnectionError("no network"))
    with pytest.raises(CourseError, match="no network") as caught:
        mnist.load("tfds")
    for words in ("TFDS_DATA_DIR", "mnist", '"built-in"'):
        assert words in caught.value.cure
    assert not (tmp_path / "nothing").exists()
