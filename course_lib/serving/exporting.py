"""Exports: a SavedModel that is whole or not there at all, whatever moment the process dies at."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from course_lib.aborts import explaining_aborts
from course_lib.data.tfidf import Vectorizer
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow
from course_lib.serving.module import ROWS, TextClassifier
from course_lib.training.saved import force_entry_to_disk, force_to_disk

tf = start_tensorflow()

SIGNATURE = "serving_default"  # where TensorFlow Serving and others look first


def export(model: Model, vectorizer: Vectorizer, path: str | os.PathLike[str]) -> Path:
    """Writes a model with its vectorizer as a SavedModel, and returns the folder.

    Its default signature takes strings, the other one rows; both answer without this library. The model may
    lie on one device or on a mesh: then each device writes its shards, and whoever loads the export gets
    whole variables.

    Args:
        model: the trained model.
        vectorizer: what made the rows that it was trained on.
        path: the folder to make; those above it are made too.

    Raises:
        CourseError: the folder is there already, it cannot be written, or the vectorizer does not fit the
            model. Then nothing was changed.

    Source: https://www.tensorflow.org/guide/saved_model.
    """
    target = _new(path)
    classifier = TextClassifier(vectorizer, model)
    with _unfinished(target) as folder:
        with explaining_aborts():
            signatures = {SIGNATURE: classifier.__call__, ROWS: classifier.of_rows}
            tf.saved_model.save(classifier, str(folder), signatures=signatures)
        force_to_disk(folder)
        _require_absent(target)  # renaming would replace an empty folder
        folder.rename(target)
        force_entry_to_disk(target.parent)
    return target


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Gives a folder beside the target that goes away in any case, for what is being written."""
    unfinished = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = tempfile.mkdtemp(prefix=f".unfinished-{target.name}-", dir=target.parent)
        yield Path(unfinished) / "export"
    except (OSError, tf.errors.OpError) as error:
        raise CourseError(
            _("Nothing can be exported to {path}: {reason}", path=target, reason=error),
            allowed=_("a folder that can be written to, on a disk with room"),
            cure=_('Choose another folder, for example "exports/1".'),
        ) from error
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


def _new(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise CourseError(
            _("{path!r} does not name a folder for an export.", path=path),
            allowed=_("a folder that does not exist yet"),
            cure=_('Choose a name, for example "exports/1".'),
        )
    _require_absent(Path(path))
    return Path(path)


def _require_absent(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise CourseError(
            _("{path} is there already; it was not touched.", path=target),
            allowed=_("a folder that does not exist yet"),
            cure=_("Give each export a folder of its own: who serves the old one may be reading it."),
        )
