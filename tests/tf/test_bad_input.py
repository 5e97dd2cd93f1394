"""Bad input gets a clear message in the reader's language that names the value; TensorFlow never sees it."""

import re
import socket

import numpy as np
import pytest

from course_lib import CourseError, MeshSpec, dtensor, i18n
from course_lib.data import imdb as data
from course_lib.data.examples import Examples
from course_lib.models import sentiment as models
from course_lib.runtime import setup
from course_lib.specs import communication, plan
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.training import run as training
from course_lib.training.checkpoints import CheckpointFolder

GRID = MeshSpec([("x", 2), ("y", 4)])
ROWS = LayoutSpec(["x", UNSHARDED], GRID)
EXAMPLES = Examples(np.zeros((128, 1200), np.float32), np.zeros(128, np.int64))


def model() -> models.MLP:
    return models.MLP(models.initial_values(), plan.data_parallel(8))


def folder_in_a_file(tmp_path):
    (tmp_path / "taken").write_text("a file")
    training.train(model(), EXAMPLES, epochs=1, checkpoints=tmp_path / "taken" / "checkpoints")


def train_from_a_foreign_checkpoint(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, {"made by": "hand"}, model=model())
    training.train(model(), EXAMPLES, epochs=1, batch_size=64, checkpoints=folder)


def real_reviews_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    monkeypatch.setattr(socket, "create_connection", no_such_host)
    return data.load_imdb("tfds")


def no_such_host(*_args, **_kwargs):
    raise socket.gaierror(-2, "no network")


# What is done wrong; what the message names in every language; words of it in English; words in Japanese.
CASES = {
    "repeated mesh dimension": (
        lambda: MeshSpec([("x", 2), ("x", 4)]),
        ["'x'"],
        "given twice",
        "メッシュ次元",
    ),
    "tensor that does not divide": (
        lambda: dtensor.pack(np.zeros((5, 4)), ROWS),
        ["5", "2", "'x'"],
        "divide",
        "軸",
    ),
    "batch that does not divide": (
        lambda: training.train(model(), EXAMPLES, epochs=1, batch_size=60),
        ["60", "8", "'batch'", "56", "64"],
        "does not divide",
        "バッチ",
    ),
    "no such device": (
        lambda: dtensor.create_mesh(MeshSpec([("x", 9)])),
        ["CPU:8", "7"],
        "no device",
        "デバイス",
    ),
    "a real mesh unlike the layout's": (
        lambda: dtensor.pack(np.zeros((8, 8)), ROWS, dtensor.create_mesh(MeshSpec(reversed(GRID.dims)))),
        [str(GRID), str(MeshSpec(reversed(GRID.dims)))],
        "real mesh",
        "メッシュ",
    ),
    "an all-to-all among too many CPUs": (
        lambda: models.MLP(
            models.initial_values(dims=(24, 12, 12)),
            plan.Plan("both", MeshSpec([("x", 12)]), {"batch": "x", "classes": "x"}),
        ),
        ["'x'", "12", "11"],
        "It would take",
        "必要",
    ),
    "a product that one mesh dimension would split twice": (
        lambda: communication.product(
            ROWS.of((8, 8)),
            LayoutSpec([UNSHARDED, "x"], GRID).of((8, 8)),
            LayoutSpec(["y", UNSHARDED], GRID),
        ),
        ["'x'", "[y, unsharded]", "'y'", "[x, unsharded]"],
        "splits the rows",
        "分割",
    ),
    "unknown kind of device": (
        lambda: setup(language=i18n.language(), kind="TPU"),
        ["'TPU'", "CPU", "GPU"],
        "no kind of device",
        "種類",
    ),
    "unknown data source": (
        lambda: data.load_imdb("imdb"),
        ["'imdb'", "built-in", "tfds"],
        "no data source",
        "データ",
    ),
}
WITH_FIXTURES = {
    "unwritable checkpoint folder": (
        lambda tmp_path, _monkeypatch: folder_in_a_file(tmp_path),
        ["taken"],
        "be written",
        "チェックポイント",
    ),
    "checkpoint of something else": (
        lambda tmp_path, _monkeypatch: train_from_a_foreign_checkpoint(tmp_path),
        ["ckpt-1", "'settings'"],
        "not saved by this kind of training",
        "この種類の学習",
    ),
    "no network": (real_reviews_without_a_network, ["TFDS_DATA_DIR"], "cannot be downloaded", "ダウンロード"),
}


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language("en")


def check_message(error: CourseError, language: str, named: list[str], english: str, japanese: str) -> None:
    message = str(error)
    assert all(part in message for part in named), message
    assert all([error.problem, error.allowed, error.cure])
    assert (english in message) is (language == "en"), message
    assert (japanese in message) is (language == "ja"), message
    assert bool(re.search(r"[ぁ-ん]", error.cure)) is (language == "ja"), error.cure


@pytest.mark.parametrize("case", CASES)
def test_the_message_names_the_value_what_is_allowed_and_the_cure(case, language):
    mistake, named, english, japanese = CASES[case]
    with pytest.raises(CourseError) as caught:
        mistake()
    check_message(caught.value, language, named, english, japanese)


@pytest.mark.parametrize("case", WITH_FIXTURES)
def test_the_message_names_what_the_machine_lacks(case, language, tmp_path, monkeypatch):
    mistake, named, english, japanese = WITH_FIXTURES[case]
    with pytest.raises(CourseError) as caught:
        mistake(tmp_path, monkeypatch)
    check_message(caught.value, language, named, english, japanese)
