"""The real sets: read as tensorflow_datasets reads them; missing or out of reach, said within seconds."""

from __future__ import annotations

import functools
import http.server
import io
import itertools
import os
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.data import images, imdb, load_fashion, load_imdb, load_mnist, sources

PREPARED = Path(os.environ.get("TFDS_DATA_DIR", "no folder"))
needs_the_sets = pytest.mark.skipif(
    not (PREPARED / "imdb_reviews").is_dir(), reason="set TFDS_DATA_DIR to the folder of the real sets"
)


# --- Prepared sets


def as_they_read(name: str, split: str, count: int):
    import tensorflow_datasets as tfds

    return (
        tfds.load(name, split=split, data_dir=str(PREPARED), download=False).take(count).as_numpy_iterator()
    )


@needs_the_sets
def test_the_real_reviews_are_read_as_tensorflow_datasets_reads_them():
    reviews = load_imdb("tfds")
    for split, examples in (("train", reviews.train), ("test", reviews.test)):
        assert len(examples.texts) == 25_000
        assert np.bincount(examples.labels).tolist() == [12_500, 12_500]
        for place, example in enumerate(as_they_read("imdb_reviews", split, 500)):
            assert examples.texts[place] == example["text"].decode()
            assert examples.labels[place] == example["label"]


DIGITS_OF_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@needs_the_sets
@pytest.mark.parametrize(
    ("load", "name", "counts"),
    [(load_mnist, "mnist", DIGITS_OF_TEST), (load_fashion, "fashion_mnist", [1_000] * 10)],
)
def test_the_real_images_are_read_as_tensorflow_datasets_reads_them(monkeypatch, load, name, counts):
    monkeypatch.setenv("COURSE_DATA", "tfds")
    loaded = load(num_train=1_000, num_test=10_000)
    assert (len(loaded.train), len(loaded.test)) == (1_000, 10_000)
    assert np.bincount(loaded.test.labels).tolist() == counts
    for split, part in (("train", loaded.train), ("test", loaded.test)):
        for place, example in enumerate(as_they_read(name, split, 200)):
            assert np.array_equal(part.images[place], example["image"][..., 0])
            assert part.labels[place] == example["label"]


# --- No set


@pytest.fixture
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "nothing"))
    return tmp_path / "nothing"


def assert_refused_with_the_cure(load, name: str, problem: str) -> None:
    with pytest.raises(CourseError, match=problem) as caught:
        load("tfds")
    assert all(words in caught.value.cure for words in ("TFDS_DATA_DIR", '"built-in"', name))


LOADERS = ((images, "MNIST", load_mnist), (images, "FASHION_MNIST", load_fashion), (imdb, "IMDB", load_imdb))


def test_no_network_is_an_error_with_the_cure_and_no_download(empty_folder, monkeypatch, language):
    for module, real, load in LOADERS:
        nobody = sources.RealSet(getattr(module, real).name, "http://127.0.0.1:1/nobody-listens-here")
        monkeypatch.setattr(module, real, nobody)
        assert_refused_with_the_cure(load, nobody.name, "Errno")
    assert not empty_folder.exists()


def test_a_network_that_never_answers_does_not_hang(empty_folder, monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(sources.urllib.request, "urlopen", lambda *_asked, **_options: answered.wait(300))
    monkeypatch.setattr(sources, "_ANSWER_SECONDS", -0.9)
    assert_refused_with_the_cure(load_imdb, "imdb_reviews", "no answer in time")
    answered.set()


def test_with_a_network_the_missing_set_is_downloaded_once_and_read(empty_folder, monkeypatch, tmp_path):
    """The download is tensorflow_datasets' own, from a small archive of the reviews' form on this machine."""
    with tarfile.open(tmp_path / "aclImdb.tar.gz", "w:gz") as tar:
        for split, kind, number in itertools.product(("train", "test"), ("pos", "neg", "unsup"), range(3)):
            text = f"{'bad' if kind == 'neg' else 'good'} {number}".encode()
            member = tarfile.TarInfo(f"aclImdb/{split}/{kind}/{number}_5.txt")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    files = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as home:
        threading.Thread(target=home.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{home.server_port}/aclImdb.tar.gz"
        monkeypatch.setattr(imdb, "IMDB", sources.RealSet(imdb.IMDB.name, address))
        module = "tensorflow_datasets.datasets.imdb_reviews.imdb_reviews_dataset_builder"
        monkeypatch.setattr(f"{module}._DOWNLOAD_URL", address)
        load_imdb("tfds")
        home.shutdown()
    reviews = load_imdb("tfds")  # from the disk
    assert sorted(reviews.train.texts) == ["bad 0", "bad 1", "bad 2", "good 0", "good 1", "good 2"]
    assert reviews.train.labels.tolist() == [text.startswith("good") for text in reviews.train.texts]
    assert len(reviews.test) == 6
