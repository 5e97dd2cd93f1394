"""Arrays kept on disk from one start to the next, to save seconds: without a place for them all goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

Arrays = Mapping[str, npt.NDArray[Any]]


def load(key: str) -> Arrays | None:
    """Returns the arrays that were stored under `key`, bit for bit; None if there are none."""
    try:
        with np.load(_file(key)) as arrays:
            return dict(arrays)
    except (OSError, ValueError, zipfile.BadZipFile):  # none, or damaged
        return None


def store(key: str, arrays: Arrays) -> None:
    """Keeps `arrays`, if it can, under a key that names all that they depend on."""
    file = _file(key)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:  # whatever interrupts, no half of a file
            np.savez(Path(folder) / "arrays.npz", **arrays)  # type: ignore[arg-type]  # old NumPy: allow_pickle
            os.replace(Path(folder) / "arrays.npz", file)


def _file(key: str) -> Path:
    chosen = os.environ.get("COURSE_CACHE_DIR")
    folder = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("course_lib")
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
