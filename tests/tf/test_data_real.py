"""The real reviews: read as tensorflow_datasets reads them; missing, unreachable or damaged, said clearly."""

from __future__ import annotations

import http.server
import io
import itertools
import os
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import numpy as np
import pytest

from course_lib import CourseError, i18n, start_tensorflow
from course_lib.data import imdb as data
from course_lib.data import prepared, real_reviews

tf = start_tensorflow()

PREPARED = Path(os.environ.get("TFDS_DATA_DIR") or Path(__file__).parents[3] / "shared" / "tfds").resolve()
SET = Path("imdb_reviews/plain_text/1.0.0")
TEST_RECORDS = "imdb_reviews-test.tfrecord-00000-of-00001"
needs_the_set = pytest.mark.skipif(
    not (PREPARED / SET).is_dir(), reason="the real reviews are not here: set TFDS_DATA_DIR to their folder"
)


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(i18n.SOURCE_LANGUAGE)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Returns a copy of the prepared set, where every file may be replaced."""
    for file in (PREPARED / SET).iterdir():
        (tmp_path / SET).mkdir(parents=True, exist_ok=True)
        (tmp_path / SET / file.name).symlink_to(file)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(prepared.RealSet, "_download", refuse_to_download)
    return tmp_path / SET


def refuse_to_download(_real_set, _builder):
    raise AssertionError("it wanted to download")


@pytest.fixture
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "nothing"))
    return tmp_path / "nothing"


# --- A prepared set


@needs_the_set
def test_the_prepared_set_is_read_as_tensorflow_datasets_reads_it(folder):
    import tensorflow_datasets as tfds

    reviews = data.load_imdb("tfds")
    for split, examples in (("train", reviews.train), ("test", reviews.test)):
        assert len(examples.texts) == 25_000
        assert np.bincount(examples.labels).tolist() == [12_500, 12_500]
        theirs = tfds.load(
            "imdb_reviews", split=split, data_dir=str(folder.parents[2]), as_supervised=True, download=False
        )
        for place, (text, label) in enumerate(theirs.take(500).as_numpy_iterator()):
            assert examples.texts[place] == text.decode()
            assert examples.labels[place] == label


def replace(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


def cut_off(folder):
    replace(folder / TEST_RECORDS, (folder / TEST_RECORDS).read_bytes()[:1_000_000])


def cut_off_between_records(folder):
    content = (folder / TEST_RECORDS).read_bytes()
    replace(folder / TEST_RECORDS, content[: 8 + 4 + int.from_bytes(content[:8], "little") + 4])


def flip_a_bit(folder):
    content = bytearray((folder / TEST_RECORDS).read_bytes())
    content[len(content) // 2] ^= 1
    replace(folder / TEST_RECORDS, bytes(content))


def lose_the_records(folder):
    (folder / TEST_RECORDS).unlink()


def lose_the_description(folder):
    (folder / "dataset_info.json").unlink()


def garble_the_description(folder):
    replace(folder / "dataset_info.json", b"{")


def lose_everything(folder):
    for file in folder.iterdir():
        file.unlink()


DAMAGES = [
    cut_off,
    cut_off_between_records,
    flip_a_bit,
    lose_the_records,
    lose_the_description,
    garble_the_description,
    lose_everything,
]


@needs_the_set
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_partial_set_is_refused_with_the_cure(folder, damage):
    damage(folder)
    with pytest.raises(CourseError) as caught:
        data.load_imdb("tfds")
    assert str(folder.parents[2]) in caught.value.problem
    assert "imdb_reviews" in caught.value.cure
    assert '"built-in"' in caught.value.cure


@needs_the_set
def test_damage_is_said_in_the_readers_language(folder, language):
    lose_the_records(folder)
    with pytest.raises(CourseError) as caught:
        data.load_imdb("tfds")
    assert str(folder.parents[2]) in str(caught.value)


# --- No set


class Answer(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_HEAD(self):
        self.send_response(self.status)
        self.end_headers()

    def do_GET(self):
        self.server.downloads.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.archive)))
        self.end_headers()
        self.wfile.write(self.server.archive)

    def log_message(self, *_details):
        """Keeps the requests out of the test's output."""


@pytest.fixture
def home(monkeypatch):
    """Returns a stand-in for the home of the reviews."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.downloads, server.archive = [], b""
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/reviews"
        monkeypatch.setattr(real_reviews, "REAL_SET", prepared.RealSet(real_reviews.REAL_SET.name, address))
        yield server
        server.shutdown()


@pytest.fixture
def archive(home, monkeypatch):
    """Makes the home serve an archive of the reviews' form, with few reviews in it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for split, kind, number in itertools.product(("train", "test"), ("pos", "neg", "unsup"), range(3)):
            text = f"{'bad' if kind == 'neg' else 'good'} {number}".encode()
            member = tarfile.TarInfo(f"aclImdb/{split}/{kind}/{number}_5.txt")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    home.archive = content.getvalue()
    address = f"http://127.0.0.1:{home.server_port}/aclImdb.tar.gz"
    module = "tensorflow_datasets.datasets.imdb_reviews.imdb_reviews_dataset_builder"
    monkeypatch.setattr(f"{module}._DOWNLOAD_URL", address)


@pytest.fixture
def downloads(monkeypatch):
    """Returns the list of the calls to download, which do nothing."""
    import tensorflow_datasets as tfds

    download = create_autospec(tfds.core.DatasetBuilder.download_and_prepare)
    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", download)
    return download.call_args_list


def assert_names_the_cure(error):
    assert "TFDS_DATA_DIR" in error.cure
    assert '"built-in"' in error.cure
    assert "imdb_reviews" in error.cure


def test_no_network_is_an_error_with_the_cure_and_no_download(empty_folder, downloads, monkeypatch, language):
    nobody = prepared.RealSet(real_reviews.REAL_SET.name, "http://127.0.0.1:1/nobody-listens-here")
    monkeypatch.setattr(real_reviews, "REAL_SET", nobody)
    with pytest.raises(CourseError) as caught:
        data.load_imdb("tfds")
    assert_names_the_cure(caught.value)
    assert downloads == []
    assert not empty_folder.exists()


def test_a_network_that_never_answers_does_not_hang(empty_folder, downloads, monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(prepared, "_ask", lambda _address: answered.wait(300))
    monkeypatch.setattr(prepared, "_ANSWER_SECONDS", -0.9)
    with pytest.raises(CourseError) as caught:
        data.load_imdb("tfds")
    answered.set()
    assert_names_the_cure(caught.value)
    assert downloads == []


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_home_that_refuses_is_no_network(empty_folder, home, downloads, monkeypatch, status):
    monkeypatch.setattr(Answer, "status", status)
    with pytest.raises(CourseError, match=str(status)):
        data.load_imdb("tfds")
    assert downloads == []


def test_with_a_network_the_missing_set_is_downloaded_once_and_read(empty_folder, home, archive):
    """The download is tensorflow_datasets' own, from a small archive on this machine."""
    for _start in range(2):
        reviews = data.load_imdb("tfds")
        assert sorted(reviews.train.texts) == ["bad 0", "bad 1", "bad 2", "good 0", "good 1", "good 2"]
        assert all(
            text.startswith("good") == bool(label)
            for text, label in zip(reviews.train.texts, reviews.train.labels, strict=True)
        )
        assert len(reviews.test) == 6
    assert home.downloads == ["/aclImdb.tar.gz"]


def test_a_set_in_another_file_format_is_read_too():
    batches = tf.data.Dataset.from_tensors({"text": ["good", "bad"], "label": tf.constant([1, 0], tf.int64)})
    info = SimpleNamespace(
        file_format=SimpleNamespace(value="array_record"), splits={"train": SimpleNamespace(num_examples=2)}
    )
    builder = SimpleNamespace(info=info, as_dataset=lambda **_options: batches)
    examples = real_reviews._read(builder, "train")
    assert (examples.texts, examples.labels.tolist()) == (("good", "bad"), [1, 0])


def test_a_download_that_fails_is_said_with_the_cure(empty_folder, home, monkeypatch):
    import tensorflow_datasets as tfds

    def fails(_builder, **_options):
        raise ConnectionError("the line broke")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", fails)
    with pytest.raises(CourseError, match="the line broke") as caught:
        data.load_imdb("tfds")
    assert_names_the_cure(caught.value)
