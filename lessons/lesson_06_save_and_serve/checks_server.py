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
from course_lib.exercises.evaluations import small_values
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.lesson_06_save_and_serve import small_classifier

Array = npt.NDArray[Any]
Make = Callable[[Any, Any], Any]
Texts = Sequence[str]

_VOCABULARY = ("[UNK]", "film", "good", "bad", "dull", "fine")
_IDF = np.array([0.5, 1, 1.5, 1.5, 2, 2.5], np.float32)
_SIGNATURE = "serving_default"


def row_of(text: str, *, unit_length: bool = True) -> Array:
    """Returns the row of a text of small letters, without TensorFlow."""
    row = np.zeros(len(_VOCABULARY), np.float32)
    for token in text.split():
        row[_VOCABULARY.index(token) if token in _VOCABULARY else 0] += 1
    row *= _IDF
    return row / max(float(np.linalg.norm(row)), 1e-9) if unit_length else row


def _made(
    answer: Callable[[Any, Any, Any], Any],
    *,
    shape: Sequence[int | None] = (None,),
    dtype: str = "string",
    signed: bool = True,
    kept: bool = True,
    jit: bool = False,
) -> Make:
    """Returns what makes a server whose signature gives `answer(vectorizer, model, texts)`."""

    def make(vectorizer: Any, model: Any) -> Any:
        tf = start_tensorflow()
        spec = [tf.TensorSpec(shape, dtype)] if signed else None

        class Server(tf.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                if kept:
                    self.vectorizer, self.model = vectorizer, model

            @tf.function(input_signature=spec, jit_compile=jit or None)  # type: ignore[untyped-decorator]
            def __call__(self, texts: Any) -> Any:
                return answer(vectorizer, model, texts)

        return Server()

    return make


def _probabilities(vectorizer: Any, model: Any, texts: Any) -> Any:
    return start_tensorflow().nn.softmax(model.evaluate_logits(vectorizer(texts)))


def _as_in_training(vectorizer: Any, model: Any, texts: Any) -> Any:
    return start_tensorflow().nn.softmax(model(vectorizer(texts)))


def _own_moments(vectorizer: Any, model: Any, texts: Any) -> Any:
    """Normalises with the moments of the texts that are asked together."""
    nn = start_tensorflow().nn
    hidden = nn.relu(vectorizer(texts) @ model.hidden_weight + model.hidden_bias)
    normal = nn.batch_normalization(hidden, *nn.moments(hidden, 0), None, None, 1e-5)
    return nn.softmax(normal @ model.logits_weight + model.logits_bias)


def _over_the_texts(vectorizer: Any, model: Any, texts: Any) -> Any:
    return start_tensorflow().nn.softmax(model.evaluate_logits(vectorizer(texts)), axis=0)


def _softmax_over_the_texts(values: small_classifier.Values, rows: Array) -> Array:
    return small_classifier.softmax(small_classifier.served_logits(values, rows).T).T


def _rows_not_scaled(vectorizer: Any, model: Any, texts: Any) -> Any:
    return start_tensorflow().nn.softmax(model.evaluate_logits(vectorizer.layer(texts)))


def _with_a_plain_method(vectorizer: Any, model: Any) -> Any:
    tf = start_tensorflow()

    class Server(tf.Module):  # type: ignore[misc, name-defined]
        def __call__(self, texts: Any) -> Any:
            return _probabilities(vectorizer, model, texts)

    return Server()


@exercise(
    "06-server",
    right=_made(lambda vectorizer, model, texts: {"probabilities": _probabilities(vectorizer, model, texts)}),
    also=[_made(_probabilities)],
    wrong=[
        (_made(_as_in_training), "moments of the batch"),
        (_made(_own_moments), "what else is asked"),
        (_made(lambda vectorizer, model, texts: model.evaluate_logits(vectorizer(texts))), "logits"),
        (
            _made(lambda *inputs: start_tensorflow().argmax(_probabilities(*inputs), axis=1)),
            "the class",
        ),
        (_made(lambda *inputs: _probabilities(*inputs)[:, 1]), "both"),
        (_made(lambda *inputs: None), "None"),
        (_made(_probabilities, jit=True), "jit_compile"),
        (_made(_rows_not_scaled), "not scaled"),
        (_made(_over_the_texts), "for each text"),
        (_made(_probabilities, signed=False), "input_signature"),
        (_with_a_plain_method, "input_signature"),
        (_made(_probabilities, shape=(2,)), "any number"),
        (
            _made(
                lambda vectorizer, model, rows: start_tensorflow().nn.softmax(model.evaluate_logits(rows)),
                shape=(None, 6),
                dtype="float32",
            ),
            "strings",
        ),
        (_made(_probabilities, kept=False), "attribute"),
        (lambda vectorizer, model: model, "input_signature"),
        (lambda vectorizer, model: None, "tf.Module"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def server(answer: Make) -> str | None:
    """A module whose export takes texts and gives the probabilities of each."""
    loaded: list[Any] = []

    def run(make: Make, texts: Texts) -> Any:
        if not loaded:
            loaded.append(_exported(make))
        return _asked(loaded[0], texts)

    return judge(
        answer,
        _by_rows(small_classifier.served),
        [
            Case((["film", "good film", "a bad dull film"],)),
            Case((["bad film", "good good film", "fine", "film bad dull", "dull"],)),
            Case((["good film"],)),
        ],
        misconceptions={
            _by_rows(small_classifier.with_own_moments): _(
                "A text's answer depends on what else is asked: this normalises with the moments of the"
                " texts. Call `model.evaluate_logits`."
            ),
            _by_rows(small_classifier.served_logits): _("These are logits. Return the softmax of them."),
            _by_rows(_softmax_over_the_texts): _(
                "The probabilities are to sum to 1 for each text: take the softmax over the classes, the last"
                " axis."
            ),
            lambda texts: _by_rows(small_classifier.served)(texts).argmax(axis=1): _(
                "This is the class of each text. Return the probabilities."
            ),
            lambda texts: _by_rows(small_classifier.served)(texts)[:, 1]: _(
                "Return both probabilities of each text, bad first."
            ),
            _by_rows(small_classifier.served, unit_length=False): _(
                "The rows are not scaled to length 1, as training had them. Call the vectorizer itself."
            ),
        },
        run=run,
    )


def _by_rows(
    function: Callable[[small_classifier.Values, Array], Array], *, unit_length: bool = True
) -> Callable[[Texts], Array]:
    return lambda texts: function(
        small_values(), np.array([row_of(text, unit_length=unit_length) for text in texts])
    )


def _exported(make: Make) -> Any:
    """Returns what is loaded of the export of what a reader's class makes."""
    tf = start_tensorflow()
    tfidf = import_module("course_lib.data.tfidf")
    vectorizer = tfidf.Vectorizer(_VOCABULARY, _IDF, len(_VOCABULARY), unit_length=True)
    model = _noting_model()
    made = make(vectorizer.module, model)
    _require_exportable(made, tf)
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.saved_model.save(made, folder, signatures={_SIGNATURE: made.__call__})
        except Exception as error:
            raise _explained(error, asked_to_train=model.asked_to_train) from error
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
    (spec, *others) = signature
    if others or spec.dtype != tf.string:
        raise CourseError(
            _("The signature takes {specs}.", specs=", ".join(map(str, signature))),
            allowed=_("one tensor of strings"),
            cure=_("A server gets texts: call the vectorizer in `__call__`."),
        )
    if spec.shape.rank != 1 or spec.shape[0] is not None:
        raise CourseError(
            _("The signature takes strings of the shape {shape} only.", shape=spec.shape),
            allowed=_("one axis, for any number of texts"),
            cure=_("Write None for a length that is not known."),
        )


def _noting_model() -> Any:
    """Returns a small model that notes whether it was asked for logits as training computes them."""
    model: type[Any] = import_module("course_lib.models.sentiment").MLP

    class Noting(model):  # type: ignore[misc]
        asked_to_train = False

        def train_logits(self, inputs: Any, weights: Any | None = None) -> Any:
            self.asked_to_train = True
            return super().train_logits(inputs, weights)

    return Noting(small_values())


def _explained(error: Exception, *, asked_to_train: bool) -> Exception:
    if asked_to_train:
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
    """Returns what the loaded signature gives for texts, on the host."""
    signature = loaded.signatures[_SIGNATURE]
    (name,) = signature.structured_input_signature[1]
    found = list(signature(**{name: start_tensorflow().constant(texts)}).values())
    if len(found) != 1:
        raise CourseError(
            _("The signature gives {count} tensors.", count=len(found)),
            allowed=_("one tensor: a row of probabilities for each text"),
            cure=_("Return the probabilities alone."),
        )
    return found[0].numpy()
