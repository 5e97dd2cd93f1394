"""Arrays kept on disk from one start to the next, to save seconds: what is damaged counts as missing."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from course_lib.errors import CourseWarning
from course_lib.i18n import _

Arrays = dict[str, npt.NDArray[Any]]

_DIGEST_BYTES = hashlib.sha256().digest_size


def load(key: str) -> Arrays | None:
    """Returns the arrays that were stored under `key`, bit for bit, or None."""
    try:
        content = _file(key).read_bytes()
    except OSError:
        return None
    digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if digest != hashlib.sha256(payload).digest():
        return None
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        return dict(arrays)


def store(key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Keeps `arrays` under a key that names all that they depend on; a `CourseWarning` says if it cannot."""
    payload = io.BytesIO()
    np.savez(payload, **arrays)  # type: ignore[arg-type]  # old NumPy takes allow_pickle for an array
    try:
        _write_whole(_file(key), hashlib.sha256(payload.getvalue()).digest() + payload.getvalue())
    except OSError as error:
        problem = _(
            "Nothing can be kept in {path}: {error}. The course goes on, but its next start will be"
            " as slow as this one. COURSE_CACHE_DIR can name another folder.",
            path=_folder(),
            error=error,
        )
        warnings.warn(CourseWarning(problem), stacklevel=4)


def _folder() -> Path:
    chosen = os.environ.get("COURSE_CACHE_DIR")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("course_lib")


def _file(key: str) -> Path:
    return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cache"


def _write_whole(file: Path, content: bytes) -> None:
    """Writes beside `file` and renames: whatever interrupts it, `file` is the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as partial:
            partial.write(content)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
