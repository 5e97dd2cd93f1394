"""Exports: what is served, with all that it needs on the way from texts to probabilities, in one folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from course_lib.aborts import explaining_aborts
from course_lib.data.tfidf import Vectorizer
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

SIGNATURE = "serving_default"  # where TensorFlow Serving and others look first
TEXTS, ROWS, PROBABILITIES = "texts", "rows", "probabilities"  # what the signatures take, what they give


class TextClassifier(tf.Module):  # type: ignore[misc, name-defined]
    """Texts in, probabilities out, for any number of texts.

    TensorFlow exports what hangs on a module as an attribute: the vectorizer with its tables, and the model
    with its variables. Each text is answered for itself, since the model takes its moving moments.

    Attributes:
        vectorizer: the preprocessing step, as training used it.
        model: what its rows go to.
        of_rows: the same for rows that were made before: `[batch, features] global`, DTensors too.

    Raises:
        CourseError: the rows of the vectorizer do not fit the model.
    """

    def __init__(self, vectorizer: Vectorizer, model: Model) -> None:
        super().__init__(name="text_classifier")
        require_fitting(vectorizer, model)
        self.vectorizer = vectorizer.module
        self.model = model
        rows = tf.TensorSpec([None, vectorizer.num_tokens], tf.float32, name=ROWS)
        self.of_rows = tf.function(self._probabilities, input_signature=[rows])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name=TEXTS)])  # type: ignore[untyped-decorator]
    def __call__(self, texts: Any) -> dict[str, Any]:
        """Returns the probability of each class: `[batch] global` of strings to `[batch, classes] global`."""
        return self._probabilities(self.vectorizer(texts))

    def _probabilities(self, rows: Any) -> dict[str, Any]:
        return {PROBABILITIES: tf.nn.softmax(self.model.evaluate_logits(rows))}


def require_fitting(vectorizer: Vectorizer, model: Model) -> None:
    """Checks that a model takes the rows that a vectorizer makes.

    Whether the columns mean the same tokens as in training cannot be seen from the numbers.

    Raises:
        CourseError: the rows have another number of columns.
    """
    if model.input_shape != (vectorizer.num_tokens,):
        raise CourseError(
            _(
                "The vocabulary makes rows of {columns} numbers; the model takes the shape {shape}.",
                columns=vectorizer.num_tokens,
                shape=model.input_shape,
            ),
            allowed=_("the vectorizer that made the rows that the model was trained on"),
            cure=_("Take `vectorizer` from the same data.tf_idf(...) as the training rows."),
        )


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
