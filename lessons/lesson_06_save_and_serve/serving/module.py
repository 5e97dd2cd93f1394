"""What is exported: the way from texts to probabilities, with everything that it needs on the way."""

from __future__ import annotations

from typing import Any

from course_lib.data.tfidf import Vectorizer
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

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
