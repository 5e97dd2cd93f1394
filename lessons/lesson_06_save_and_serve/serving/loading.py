"""Exports that were loaded: asked for a list of texts, they give probabilities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.lesson_06_save_and_serve.serving.exporting import SIGNATURE
from lessons.lesson_06_save_and_serve.serving.module import PROBABILITIES, ROWS, TEXTS

tf = start_tensorflow()

_TEXTS_AT_A_TIME = 2_048  # their rows are dense


class Served:
    """A loaded export; calling it with texts gives probabilities.

    Attributes:
        path: where it was loaded from.
        module: what TensorFlow made of it: plain variables and functions, none of this library's classes.
        signature: the function that a server calls, `signature(texts=...)`.
        of_rows: the same for rows, `of_rows(rows=...)`; a DTensor is answered by the devices of its mesh.
    """

    def __init__(self, path: Path, module: Any) -> None:
        self.path, self.module = path, module
        self.signature, self.of_rows = module.signatures[SIGNATURE], module.signatures.get(ROWS)

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Returns the probability of each class for each text, `[texts, classes] global`.

        Raises:
            CourseError: the texts are not a list with at least one text.
        """
        if isinstance(texts, str) or not len(texts):
            raise CourseError(
                _("{texts!r} is not a list of texts.", texts=texts),
                allowed=_("a list with at least one string"),
                cure=_('Put even a single text into a list: served(["A fine film."]).'),
            )
        parts = [
            self.signature(**{TEXTS: tf.constant(texts[at : at + _TEXTS_AT_A_TIME])})[PROBABILITIES]
            for at in range(0, len(texts), _TEXTS_AT_A_TIME)
        ]
        return np.concatenate([np.asarray(part) for part in parts])


def load(path: str | os.PathLike[str]) -> Served:
    """Returns the export in a folder."""
    return Served(Path(path), tf.saved_model.load(os.fspath(path)))
