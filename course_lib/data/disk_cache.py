"""Arrays kept on disk from one start to the next: written whole or not at all, and checked before use."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseWarning
from course_lib.i18n import _

Arrays = dict[str, npt.NDArray[Any]]

_OPENING = b"course_lib cache, format 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_MOST_ENTRIES = 8
_SECONDS_UNTIL_STALE = 3600


def default_folder() -> Path:
    """Returns the folder for the course's caches.

    It is COURSE_CACHE_DIR if that is set, else a folder of the course in the user's cache folder.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/ (XDG_CACHE_HOME is absolute).
    """
    if chosen := os.environ.get("COURSE_CACHE_DIR"):
        return Path(chosen).expanduser()
    users = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (users if users.is_absolute() else Path.home() / ".cache") / "course_lib"


@dataclass(frozen=True)
class CacheFolder:
    """A folder of arrays, each set of them under a key that names all that it depends on.

    A cache makes nothing fail: what cannot be read is missing, what cannot be written is made again next
    time. A `CourseWarning` says so.

    Attributes:
        path: the folder; `store` makes it.
    """

    path: Path

    def file(self, key: str) -> Path:
        """Returns the file that holds the arrays of `key`, whether it is there or not."""
        return self.path / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cache"

    def load(self, key: str) -> Arrays | None:
        """Returns the arrays that were stored under `key`, bit for bit, or None.

        A file that is cut off or changed in any byte is not used.
        """
        file = self.file(key)
        try:
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _warn(_("The cache {file} cannot be read: {error}. It is made again.", file=file, error=error))
            return None
        payload = content[len(_OPENING) + _DIGEST_BYTES :]
        if content != _seal(key, payload):
            _warn(_("The cache {file} is damaged or cut off. It is not used, but made again.", file=file))
            return None
        return _unpack(payload)

    def store(self, key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keeps `arrays` under `key`; another process sees all of them or none."""
        payload = io.BytesIO()
        np.savez(payload, allow_pickle=False, **arrays)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            _write_whole(self.file(key), _seal(key, payload.getvalue()))
            self._tidy()
        except OSError as error:
            _warn(
                _(
                    "Nothing can be kept in {path}: {error}. The course goes on, but its next start will be"
                    " as slow as this one. COURSE_CACHE_DIR can name another folder.",
                    path=self.path,
                    error=error,
                )
            )

    def _tidy(self) -> None:
        """Removes the oldest entries beyond a few, and what an interrupted write left behind."""
        entries = sorted(self.path.glob("*.cache"), key=_age_seconds)
        partial = [file for file in self.path.glob("*.partial") if _age_seconds(file) > _SECONDS_UNTIL_STALE]
        for file in [*entries[_MOST_ENTRIES:], *partial]:
            with contextlib.suppress(OSError):
                file.unlink()


def _seal(key: str, payload: bytes) -> bytes:
    """Returns the content of a file; the digest covers the key: no other key's file passes."""
    return _OPENING + hashlib.sha256(key.encode() + b"\0" + payload).digest() + payload


def _unpack(payload: bytes) -> Arrays:
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _write_whole(file: Path, content: bytes) -> None:
    """Writes beside `file` and renames: whatever interrupts it, `file` is the old one or the new one."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as partial:
            partial.write(content)
            partial.flush()
            os.fsync(partial.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the rename itself survive a power cut, where the system can open a folder (Windows cannot)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _age_seconds(file: Path) -> float:
    """Returns the seconds since `file` was written; a file that another process removed is infinitely old."""
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return float("inf")


def _warn(message: str) -> None:
    warnings.warn(CourseWarning(message), stacklevel=5)
