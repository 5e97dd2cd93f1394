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
from course_lib.training.saved import force_entry_to_disk, force_to_disk, warning_about
from lessons.lesson_06_save_and_serve.serving.module import ROWS, TextClassifier

tf = start_tensorflow()

SIGNATURE = "serving_default"  # where TensorFlow Serving and others look first
_UNFINISHED = ".unfinished-"


def export(model: Model, vectorizer: Vectorizer, path: str | os.PathLike[str]) -> Path:
    """Writes a model with its vectorizer as a SavedModel, and returns the folder.

    Its default signature takes strings, the other one rows; both answer without this library. The model may
    lie on one device or on a mesh: then each device writes its shards, and whoever loads the export gets
    whole variables. Stop a training of the model first: while it goes on, variables of different steps
    would come into the export.

    A process that is killed here leaves a folder `.unfinished-...` beside the target; nothing clears it.

    Args:
        model: the trained model.
        vectorizer: what made the rows that it was trained on.
        path: the folder to make; those above it are made too.

    Raises:
        CourseError: the folder is there already, it cannot be written, or the vectorizer does not fit the
            model. Then nothing was changed.
        tf.errors.OpError: TensorFlow failed, and not because of the folder. Then nothing was changed.

    Source: https://www.tensorflow.org/guide/saved_model.
    """
    target = _named(path)
    classifier = TextClassifier(vectorizer, model)
    with _faults_of_the_folder(target), _folders_above(target) as new, _unfinished(target) as folder:
        with explaining_aborts():
            signatures = {SIGNATURE: classifier.__call__, ROWS: classifier.of_rows}
            tf.saved_model.save(classifier, str(folder), signatures=signatures)
        force_to_disk(folder)
        _require_absent(target)  # renaming would replace an empty folder
        folder.rename(target)
    with warning_about(target):
        for made in (target, *new):
            force_entry_to_disk(made.parent)
    return target


@contextlib.contextmanager
def _faults_of_the_folder(target: Path) -> Iterator[None]:
    """Says what to do where the folder cannot be written; other errors of TensorFlow's go through."""
    try:
        _require_absent(target)
        yield
    except (OSError, tf.errors.OpError) as error:
        if isinstance(error, tf.errors.OpError) and _UNFINISHED not in error.message:
            raise  # where a file is the reason, TensorFlow names it
        raise CourseError(
            _("Nothing can be exported to {path}: {reason}", path=target, reason=error),
            allowed=_("a folder that can be written to, on a disk with room"),
            cure=_('Choose another folder, for example "exports/1".'),
        ) from error


@contextlib.contextmanager
def _folders_above(target: Path) -> Iterator[list[Path]]:
    """Makes the folders above the target, gives those that are new, and removes them if it stays absent."""
    new = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield new
    except BaseException:
        for folder in new:
            with contextlib.suppress(OSError):  # somebody else put something there
                folder.rmdir()
        raise


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Gives a folder beside the target that goes away in any case, for what is being written."""
    unfinished = tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent)
    try:
        yield Path(unfinished) / "export"
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _named(path: str | os.PathLike[str]) -> Path:
    if not _can_be_a_name(path):
        raise CourseError(
            _("{path!r} does not name a folder for an export.", path=path),
            allowed=_("a folder that does not exist yet"),
            cure=_('Choose a name, for example "exports/1".'),
        )
    return Path(path)


def _can_be_a_name(path: object) -> bool:
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return bool(encoded) and b"\0" not in encoded


def _require_absent(target: Path) -> None:
    """Checks that nothing has the name, a link that leads nowhere included.

    Raises:
        CourseError: something has it.
        OSError: the name cannot be looked up.
    """
    try:
        target.lstat()
    except FileNotFoundError:
        return
    raise CourseError(
        _("{path} is there already; it was not touched.", path=target),
        allowed=_("a folder that does not exist yet"),
        cure=_("Give each export a folder of its own: who serves the old one may be reading it."),
    )
