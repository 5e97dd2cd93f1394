"""Exercise 06-server: a class whose export takes texts and gives probabilities."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import logits_of, small_values, softmax
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Array = npt.NDArray[Any]
Make = Callable[[Any, Any], Any]
Texts = Sequence[str]

_VOCABULARY = ("[UNK]", "film", "good", "bad", "dull", "fine")
_IDF = np.array([0.5, 1, 1.5, 1.5, 2, 2.5], np.float32)
_SIGNATURE = "serving_default"


def _logits(texts: Texts, *, own_moments: bool = False) -> Array:
    """Returns the logits of texts of small letters, without TensorFlow."""
    rows = np.zeros((len(texts), len(_VOCABULARY)), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for token in text.split():
            row[_VOCABULARY.index(token) if token in _VOCABULARY else 0] += 1
    rows *= _IDF
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return logits_of(small_values(), rows / lengths, own_moments=own_moments)


def _made(vectorizer: Any, model: Any) -> Any:
    """Returns an object that can be exported."""
    tf = start_tensorflow()

    class Server(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.vectorizer, self.model = vectorizer, model

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
        def __call__(self, texts: Any) -> Any:
            return tf.nn.softmax(self.model.evaluate_logits(self.vectorizer(texts)))

    return Server()


@exercise("06-server", right=_made, on_devices=True)
def server(answer: Make) -> str | None:
    """A module whose export takes texts and gives the probabilities of each."""
    loaded: list[Any] = []

    def run(make: Make, texts: Texts) -> Any:
        if not loaded:
            loaded.append(_exported(make))
        return _asked(loaded[0], texts)

    batches = [
        ["film", "good film", "a bad dull film"],
        ["bad film", "good good film", "fine", "film bad dull", "dull"],
        ["good film"],
    ]
    return judge(
        answer,
        lambda texts: softmax(_logits(texts)),
        [Case((texts,)) for texts in batches],
        misconceptions={
            lambda texts: softmax(_logits(texts, own_moments=True)): _(
                "A text's answer depends on what else is asked: this normalises with the moments of the"
                " texts. Call `model.evaluate_logits`."
            ),
            _logits: _("These are logits. Return the softmax of them."),
            lambda texts: _logits(texts).argmax(axis=1): _(
                "This is the class of each text. Return the probabilities."
            ),
        },
        run=run,
    )


def _exported(make: Make) -> Any:
    """Returns what is loaded of the export of what a reader's class makes."""
    tf = start_tensorflow()
    tfidf = import_module("course_lib.data.tfidf")
    vectorizer = tfidf.Vectorizer(_VOCABULARY, _IDF, len(_VOCABULARY), unit_length=True)
    made = make(vectorizer.module, import_module("course_lib.models.sentiment").MLP(small_values()))
    _require_exportable(made, tf)
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.saved_model.save(made, folder, signatures={_SIGNATURE: made.__call__})
        except Exception as error:
            raise _explained(error) from error
        return tf.saved_model.load(folder)


def _require_exportable(made: Any, tf: Any) -> None:
    cure = _("Look at the class once more: `__init__` keeps what is needed, `__call__` is the signature.")
    if not isinstance(made, tf.Module):
        raise CourseError(
            _("An object of the type `{kind}` cannot be exported here.", kind=type(made).__name__),
            allowed=_("objects of a class that inherits from tf.Module"),
            cure=cure,
        )
    signature = getattr(answered(made.__call__), "input_signature", None)
    if not signature:
        raise CourseError(
            _("`__call__` is no `tf.function` with an `input_signature`, so that nothing is traced."),
            allowed=_("@tf.function(input_signature=[tf.TensorSpec(...)])"),
            cure=cure,
        )
    if getattr(made.__call__, "_jit_compile", None):  # TensorFlow would end the process
        raise CourseError(
            _("`jit_compile=True` compiles the function by XLA, which has no strings."),
            allowed=_("@tf.function(input_signature=[tf.TensorSpec(...)])"),
            cure=_("Leave `jit_compile` out."),
        )
    if [spec.dtype for spec in signature] != [tf.string]:
        raise CourseError(
            _("The signature takes {specs}.", specs=", ".join(map(str, signature))),
            allowed=_("one tensor of strings"),
            cure=_("A server gets texts: call the vectorizer in `__call__`."),
        )
    if signature[0].shape.as_list() != [None]:
        raise CourseError(
            _("The signature takes strings of the shape {shape} only.", shape=signature[0].shape),
            allowed=_("one axis, for any number of texts"),
            cure=_("Write None for a length that is not known."),
        )


def _explained(error: Exception) -> Exception:
    if "train_logits" in str(error):  # TensorFlow lists the calls of a traced function
        return CourseError(
            _("The model was asked for its logits as training computes them, with the moments of the batch."),
            allowed=_("logits that depend on one text alone"),
            cure=_("Call `model.evaluate_logits`, which takes the moving moments."),
        )
    if "untracked" not in str(error):
        return error
    return CourseError(
        _("The export lacks something that `__call__` uses: no attribute of the object leads to it."),
        allowed=_("variables and tables that the object holds"),
        cure=_("Make it an attribute in `__init__`, for example `self.model = model`."),
    )


def _asked(loaded: Any, texts: Texts) -> Any:
    """Returns what the loaded signature gives for texts: its only tensor, or all of them."""
    signature = loaded.signatures[_SIGNATURE]
    (name,) = signature.structured_input_signature[1]
    given = signature(**{name: start_tensorflow().constant(texts)})
    return next(iter(given.values())) if len(given) == 1 else given
