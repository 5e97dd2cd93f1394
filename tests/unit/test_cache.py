"""The cache on disk: whole or not there, whatever happened to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import i18n
from course_lib.data import disk_cache as cache
from course_lib.data.disk_cache import CacheFolder, default_folder
from course_lib.errors import CourseWarning

ARRAYS = {
    "values": np.linspace(0.1, 7.3, 50, dtype=np.float32),
    "columns": np.arange(50, dtype=np.uint16),
    "words": np.frombuffer("naïve 映画".encode(), np.uint8),
    "empty": np.zeros((0, 3), np.int64),
}
KEY = '{"texts": "abc"}'


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(i18n.SOURCE_LANGUAGE)


@pytest.fixture
def folder(tmp_path):
    filled = CacheFolder(tmp_path / "cache")
    filled.store(KEY, ARRAYS)
    return filled


def assert_is_arrays(loaded):
    assert loaded is not None
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


def test_arrays_come_back_bit_for_bit_and_silently(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_is_arrays(folder.load(KEY))


def test_what_was_never_stored_is_missing_silently(folder, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder.load("another key") is None
        assert CacheFolder(tmp_path / "nowhere").load(KEY) is None


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_a_file_with_any_bit_changed_is_refused_and_made_again(tmp_path_factory, at, bit):
    folder = CacheFolder(tmp_path_factory.mktemp("cache"))
    folder.store(KEY, ARRAYS)
    content = bytearray(folder.file(KEY).read_bytes())
    content[int(at * len(content))] ^= 1 << bit
    folder.file(KEY).write_bytes(content)
    with pytest.warns(CourseWarning):
        assert folder.load(KEY) is None
    folder.store(KEY, ARRAYS)
    assert_is_arrays(folder.load(KEY))


def test_a_file_cut_off_anywhere_is_refused(folder):
    content = folder.file(KEY).read_bytes()
    for length in [*range(80), *range(80, len(content), 97), len(content) - 1]:
        folder.file(KEY).write_bytes(content[:length])
        with pytest.warns(CourseWarning):
            assert folder.load(KEY) is None


def test_a_file_with_bytes_after_its_end_is_refused(folder):
    with folder.file(KEY).open("ab") as file:
        file.write(b"\0")
    with pytest.warns(CourseWarning):
        assert folder.load(KEY) is None


def test_a_damaged_file_is_named_in_the_readers_language(folder, language):
    folder.file(KEY).write_bytes(b"")
    with pytest.warns(CourseWarning) as caught:
        folder.load(KEY)
    assert str(folder.file(KEY)) in str(caught[0].message)


def test_the_file_of_another_key_does_not_pass(folder):
    folder.file("another key").write_bytes(folder.file(KEY).read_bytes())
    with pytest.warns(CourseWarning):
        assert folder.load("another key") is None


def test_a_file_that_cannot_be_read_is_missing_and_says_so(folder):
    folder.file(KEY).unlink()
    folder.file(KEY).mkdir()  # root may read every file, but nobody reads a folder
    with pytest.warns(CourseWarning):
        assert folder.load(KEY) is None


def test_an_unwritable_folder_makes_nothing_fail_and_says_so(tmp_path, language):
    (tmp_path / "file").write_text("in the way")
    folder = CacheFolder(tmp_path / "file" / "cache")
    with pytest.warns(CourseWarning) as caught:
        folder.store(KEY, ARRAYS)
    assert str(folder.path) in str(caught[0].message)
    assert "COURSE_CACHE_DIR" in str(caught[0].message)
    assert folder.load(KEY) is None


def test_a_full_disk_leaves_the_old_file_and_no_litter(folder, monkeypatch):
    def fails(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "fsync", fails)
    with pytest.warns(CourseWarning, match="No space left"):
        folder.store(KEY, {"values": np.zeros(3)})
    assert_is_arrays(folder.load(KEY))
    assert [file.suffix for file in folder.path.iterdir()] == [".cache"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file_and_no_litter(folder, monkeypatch, call):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache.os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.store(KEY, {"values": np.zeros(3)})
    monkeypatch.undo()
    assert_is_arrays(folder.load(KEY))
    assert [file.suffix for file in folder.path.iterdir()] == [".cache"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_process_killed_while_it_writes_leaves_the_old_file(folder, call):
    code = (
        "import os, signal, sys, pathlib, numpy; from course_lib.data import disk_cache as cache;"
        f"cache.os.{call} = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL);"
        "cache.CacheFolder(pathlib.Path(sys.argv[1])).store(sys.argv[2], {'values': numpy.zeros(3)})"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(folder.path), KEY], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(folder.path.glob("*.partial"))) == 1
    assert_is_arrays(folder.load(KEY))


def test_old_litter_and_old_entries_are_removed_but_not_a_write_at_work(folder):
    old, new = folder.path / "old.partial", folder.path / "new.partial"
    for file, age_seconds in ((old, 7_200), (new, 60)):
        file.write_bytes(b"half")
        os.utime(file, (time.time() - age_seconds,) * 2)
    for number in range(12):
        folder.store(f"key {number}", ARRAYS)
        stamp = time.time() - 100 + number
        os.utime(folder.file(f"key {number}"), (stamp, stamp))
    folder.store(KEY, ARRAYS)
    assert not old.exists()
    assert new.exists()
    assert len(list(folder.path.glob("*.cache"))) == 8
    assert_is_arrays(folder.load(KEY))
    assert_is_arrays(folder.load("key 11"))
    assert folder.load("key 0") is None


def write_often(path, fill):
    values = np.full(20_000, fill, np.int64)
    for _repeat in range(15):
        CacheFolder(Path(path)).store(KEY, {"values": values})


def test_two_processes_that_write_at_once_never_show_a_mixture(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_often, args=(str(tmp_path), fill)) for fill in (1, 2)]
    for writer in writers:
        writer.start()
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while any(writer.is_alive() for writer in writers):
            if (loaded := CacheFolder(tmp_path).load(KEY)) is not None:
                seen.add((len(loaded["values"]), *np.unique(loaded["values"]).tolist()))
            time.sleep(0.002)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert CacheFolder(tmp_path).load(KEY) is not None
    assert seen <= {(20_000, 1), (20_000, 2)}
    assert list(tmp_path.glob("*.partial")) == []


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("COURSE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == tmp_path / "home" / ".cache" / "course_lib"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == tmp_path / "home" / ".cache" / "course_lib"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "course_lib"
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_folder() == tmp_path / "chosen"


def test_texts_and_cache_need_no_tensorflow():
    code = "import sys; from course_lib import data; data.load_imdb(); print('tensorflow' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "False"
