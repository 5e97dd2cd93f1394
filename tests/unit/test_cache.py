"""The cache on disk: whole or missing, whatever happens to its files, and never a reason to fail."""

import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import i18n
from course_lib.data import disk_cache as cache
from course_lib.errors import CourseWarning

ARRAYS = {
    "values": np.linspace(-1, 1, 50, dtype=np.float32),
    "columns": np.arange(50, dtype=np.uint16),
    "words": np.array(["naïve", "映画", ""]),
    "empty": np.zeros((0, 3), np.int64),
}
KEY = '{"texts": "abc"}'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield tmp_path / "cache"


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def assert_is_arrays(loaded):
    assert loaded is not None
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


def test_arrays_come_back_bit_for_bit_and_only_under_their_key():
    assert cache.load(KEY) is None
    cache.store(KEY, ARRAYS)
    assert_is_arrays(cache.load(KEY))
    assert cache.load("another key") is None


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_file_that_is_changed_or_cut_off_anywhere_is_missing_and_made_again(tmp_path_factory, at, bit, cut):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("COURSE_CACHE_DIR", str(folder))
        cache.store(KEY, ARRAYS)
        content = bytearray(the_file(folder).read_bytes())
        place = int(at * len(content))
        content[place] ^= 1 << bit
        the_file(folder).write_bytes(content[:place] if cut else content)
        assert cache.load(KEY) is None
        cache.store(KEY, ARRAYS)
        assert_is_arrays(cache.load(KEY))


def test_a_file_that_cannot_be_read_is_missing(folder):
    cache.store(KEY, ARRAYS)
    file = the_file(folder)
    file.unlink()
    file.mkdir()  # root may read every file, but nobody reads a folder
    assert cache.load(KEY) is None


@pytest.mark.parametrize(("language", "words"), [("en", "as slow as this one"), ("ja", "次回の起動にも")])
def test_an_unwritable_folder_only_warns(folder, language, words):
    folder.write_text("in the way")
    i18n.set_language(language)
    with pytest.warns(CourseWarning, match=words) as caught:
        cache.store(KEY, ARRAYS)
    assert str(folder) in str(caught[0].message)
    assert "COURSE_CACHE_DIR" in str(caught[0].message)
    assert cache.load(KEY) is None


def test_an_interrupted_write_leaves_the_old_file_and_no_litter(folder, monkeypatch):
    cache.store(KEY, ARRAYS)

    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.store(KEY, {"values": np.zeros(3)})
    assert_is_arrays(cache.load(KEY))
    assert the_file(folder).suffix == ".cache"


@pytest.mark.parametrize("old", [True, False])
def test_a_process_killed_while_it_writes_leaves_the_old_file_or_none(old):
    if old:
        cache.store(KEY, ARRAYS)
    code = (
        "import os, signal, sys, numpy; from course_lib.data import disk_cache as cache;"
        "cache.os.replace = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL);"
        "cache.store(sys.argv[1], {'values': numpy.zeros(3)})"
    )
    killed = subprocess.run([sys.executable, "-c", code, KEY], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    if old:
        assert_is_arrays(cache.load(KEY))
    else:
        assert cache.load(KEY) is None


def test_without_a_folder_of_ones_own_it_is_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_CACHE_DIR")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "users" / name)
    cache.store(KEY, ARRAYS)
    assert the_file(tmp_path / "users" / "course_lib").suffix == ".cache"


def test_texts_and_cache_need_no_tensorflow():
    code = "import sys; from course_lib import data; data.load_imdb(); print('tensorflow' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "False"
