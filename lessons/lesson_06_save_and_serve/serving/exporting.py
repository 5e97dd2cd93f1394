"""Exports: a SavedModel that is whole or not there at all, whatever moment the process dies at."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from course_lib.aborts import explaining_aborts
from course_lib.data.tfidf import Vectorizer
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow
from lessons.lesson_06_save_and_serve.serving.module import ROWS, TextClassifier

tf = start_tensorflow()

SIGNATURE = "serving_default"  # where TensorFlow Serving and others look first


@explaining_aborts()
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
        CourseError: the folder is there already, or the vectorizer does not fit the model.

    Source: https://www.tensorflow.org/guide/saved_model.
    """
    target, classifier = Path(path), TextClassifier(vectorizer, model)
    if target.exists():
        raise CourseError(
            _("{path} is there already; it was not touched.", path=target),
            allowed=_("a folder that does not exist yet"),
            cure=_("Give each export a folder of its own: who serves the old one may be reading it."),
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as unfinished:
        signatures = {SIGNATURE: classifier.__call__, ROWS: classifier.of_rows}
        tf.saved_model.save(classifier, f"{unfinished}/export", signatures=signatures)
        Path(unfinished, "export").rename(target)
    return target
