"""Models to serve: out of a checkpoint, and exports that were loaded and answer a list of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.saved import Saved
from lessons.lesson_06_save_and_serve.serving.exporting import PROBABILITIES, ROWS, SIGNATURE, TEXTS

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


def restore_model(folder: CheckpointFolder, model: Model) -> Saved:
    """Gives a model the values of the newest checkpoint of a training, and returns the checkpoint.

    The mesh of the training does not matter, nor does that of the model. The slots of an optimizer stay in
    the checkpoint: serving needs none.

    Raises:
        CourseError: there is no checkpoint, or it holds no model; then `model` is as it was.
    """
    saved = folder.restore_latest(model=model)
    if saved is None:
        raise CourseError(
            _("There is no whole checkpoint in {path}.", path=folder.path),
            allowed=_("a folder in which a training has saved"),
            cure=_("Give training.train(..., checkpoints=...) this folder, and train for an epoch."),
        )
    return saved
