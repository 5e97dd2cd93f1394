"""What code checks in lesson 06: gathering the shards of a variable, and a class that is exported."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import logits_of, small_values, softmax
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Array = npt.NDArray[Any]
Texts = Sequence[str]

_LAYOUTS = (
    LayoutSpec([UNSHARDED, "model"], MeshSpec([("batch", 4), ("model", 2)])),
    LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])),
    LayoutSpec(["feature", "model"], MeshSpec([("model", 2), ("feature", 4)])),
    LayoutSpec(["model"], MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])),
    LayoutSpec([UNSHARDED, UNSHARDED], MeshSpec([("batch", 8)])),
)


def _components(whole: Array, layout: LayoutSpec) -> list[Array]:
    return layout.of(whole.shape).split(whole)


def _added(whole: Array, layout: LayoutSpec) -> Array:
    made, sharding = np.zeros_like(whole), layout.of(whole.shape)
    for device_id, part in enumerate(sharding.split(whole)):
        made[sharding.shards[device_id]] += part
    return made


def _relaid(variable: Any) -> Array:
    """Returns the whole value, which is laid out on every device."""
    dtensor = start_tensorflow().experimental.dtensor
    everywhere = dtensor.Layout.replicated(variable.layout.mesh, variable.shape.rank)
    return np.asarray(dtensor.relayout(variable, everywhere).numpy())


@exercise("06-gather", right=_relaid, on_devices=True)
def gather(answer: Callable[[Any], Any]) -> str | None:
    """The whole value of a DVariable, an array."""
    cases = []
    for layout in _LAYOUTS:
        shape = (8, 16)[: layout.num_axes]
        told = _("a variable of the shape {shape} with the layout {layout}", shape=shape, layout=layout)
        values = np.random.default_rng(6).permutation(np.prod(shape)).astype(np.float32)
        cases.append(Case((values.reshape(shape), layout), told=told))
    large = np.arange(2**24, 2**24 + 8)  # neighbours that float32 cannot tell apart
    cases.append(Case((large, _LAYOUTS[3]), told=_("a variable of large integers")))

    def run(function: Callable[[Any], Any], whole: Array, layout: LayoutSpec) -> Any:
        with on_devices() as (tf, dtensor):
            made = function(tf.experimental.dtensor.DVariable(dtensor.pack(whole, layout)))
            if tf.is_tensor(made) and tf.experimental.dtensor.is_dtensor(made):
                raise CourseError(
                    _("What is returned is still a DTensor on its mesh."),
                    allowed=_("a NumPy array"),
                    cure=_("Put the components together, and return an array."),
                )
            return made

    return judge(
        answer,
        lambda whole, _layout: whole,
        cases,
        misconceptions={
            lambda whole, layout: np.concatenate(_components(whole, layout)): _(
                "This lays the components one after the other, in the order of the devices. Which part of the"
                " whole does each of them hold?"
            ),
            lambda whole, layout: _components(whole, layout)[0]: _(
                "This is what the first device holds. Where a variable is split, others hold the rest."
            ),
            _added: _(
                "This adds a block once for each device that holds it. Copies are equal: write them over each"
                " other."
            ),
        },
        run=run,
        tolerance=0.0,
        advice=_(
            "An entry of the layout names a mesh dimension; the place of the device along it counts blocks."
        ),
    )


_VOCABULARY = ("[UNK]", "film", "good", "bad", "dull", "fine")
_WEIGHTS = np.array([0.5, 1, 1.5, 1.5, 2, 2.5], np.float32)
_NAMES = {
    "W1": "hidden_weight",
    "b1": "hidden_bias",
    "W2": "logits_weight",
    "b2": "logits_bias",
    "mean": "moving_mean",
    "variance": "moving_variance",
}
_SPEC = "@tf.function(input_signature=[tf.TensorSpec(...)])"


def _probabilities(
    texts: Texts, *, own_moments: bool = False, scaled: bool = True, together: bool = False
) -> Array:
    """Returns the probabilities of texts of small letters, without TensorFlow: `[texts, 2] global`."""
    rows = np.zeros((len(texts), len(_VOCABULARY)), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for token in text.split():
            row[_VOCABULARY.index(token) if token in _VOCABULARY else 0] += 1
    rows *= _WEIGHTS
    if scaled:
        rows /= np.linalg.norm(rows, axis=None if together else 1, keepdims=True)
    return softmax(logits_of(small_values(), rows, own_moments=own_moments))


def _labelled(probabilities: Array, *, names: Texts = ("bad", "good")) -> dict[str, list[Any]]:
    labels = [names[column] for column in probabilities.argmax(axis=1)]
    return {"label": labels, "probability": probabilities.max(axis=1).tolist()}


def _parts() -> tuple[Any, Any]:
    """Returns a vectorizer and a model of ordinary variables, as the lesson makes them, with six columns."""
    tf = start_tensorflow()

    class MLP(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, value in _NAMES.items():
                setattr(self, name, tf.Variable(small_values()[value]))

        def hidden(self, x: Any) -> Any:
            return tf.nn.relu(x @ self.W1 + self.b1)

        def logits(self, hidden: Any, mean: Any, variance: Any) -> Any:
            normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
            return normal @ self.W2 + self.b2

    vectorizer = tf.keras.layers.TextVectorization(
        len(_VOCABULARY), output_mode="tf_idf", pad_to_max_tokens=True
    )
    vectorizer.set_vocabulary(list(_VOCABULARY), idf_weights=_WEIGHTS)
    return vectorizer, MLP()


def _made(vectorizer: Any, model: Any) -> Any:
    """Returns an object that can be exported."""
    tf = start_tensorflow()

    class Server(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.vectorizer, self.model = vectorizer, model

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
        def __call__(self, texts: Any) -> Any:
            hidden = self.model.hidden(tf.math.l2_normalize(self.vectorizer(texts), axis=1))
            logits = self.model.logits(hidden, self.model.mean, self.model.variance)
            label = tf.gather(["bad", "good"], tf.argmax(logits, axis=1))
            return {"label": label, "probability": tf.reduce_max(tf.nn.softmax(logits), axis=1)}

    return Server()


@exercise("06-server", right=_made, on_devices=True)
def server(answer: Callable[[Any, Any], Any]) -> str | None:
    """A module whose export takes texts and gives the label and the probability of each."""
    loaded: list[Any] = []

    def run(make: Callable[[Any, Any], Any], texts: Texts) -> Any:
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
        lambda texts: _labelled(_probabilities(texts)),
        [Case((texts,)) for texts in batches],
        misconceptions={
            lambda texts: _labelled(_probabilities(texts, own_moments=True)): _(
                "What is predicted for a text depends on what else is asked: this normalises with the moments"
                " of the texts. Take `model.mean` and `model.variance`."
            ),
            lambda texts: _labelled(_probabilities(texts, scaled=False)): _(
                "The model was trained on rows of length 1; these rows are as the vectorizer makes them."
            ),
            lambda texts: _labelled(_probabilities(texts, together=True)): _(
                "This scales all rows of a request together. Scale each row to length 1, along `axis=1`."
            ),
            lambda texts: _labelled(_probabilities(texts), names=("good", "bad")): _(
                "The labels are the wrong way round: column 0 is bad."
            ),
            lambda texts: {
                **_labelled(_probabilities(texts)),
                "probability": _probabilities(texts)[:, 1],
            }: _("This is the probability of good for each text. Return that of the label."),
        },
        run=run,
    )


def _exported(make: Callable[[Any, Any], Any]) -> Any:
    """Returns what is loaded of the export of what a reader's class makes."""
    tf = start_tensorflow()
    made = make(*_parts())
    _require_exportable(made, tf)
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.saved_model.save(made, folder, signatures={"serving_default": made.__call__})
        except Exception as error:
            if "untracked" not in str(error):
                raise
            raise CourseError(
                _("The export lacks something that `__call__` uses: no attribute of the object leads to it."),
                allowed=_("variables and tables that the object holds"),
                cure=_("Make it an attribute in `__init__`, for example `self.model = model`."),
            ) from error
        if b"PyFunc" in Path(folder, "saved_model.pb").read_bytes():
            raise CourseError(
                _("The graph calls Python code of this process, which no other process has."),
                allowed=_("TensorFlow's own operations"),
                cure=_("Leave tf.py_function and tf.numpy_function out."),
            )
        return tf.saved_model.load(folder)


def _require_exportable(made: Any, tf: Any) -> None:
    if not isinstance(made, tf.Module):
        raise CourseError(
            _("An object of the type `{kind}` cannot be exported here.", kind=type(made).__name__),
            allowed=_("objects of a class that inherits from tf.Module"),
            cure=_("Look at the class `Classifier` once more."),
        )
    signature = getattr(answered(made.__call__), "input_signature", None)
    if not signature or getattr(made.__call__, "_jit_compile", None):  # XLA would end the process on strings
        raise CourseError(
            _("`__call__` needs an `input_signature`, and no `jit_compile`: XLA has no strings."),
            allowed=_SPEC,
            cure=_("Look at the class `Classifier` once more."),
        )
    if [(spec.dtype, spec.shape.rank) for spec in signature] != [(tf.string, 1)] or signature[0].shape[0]:
        raise CourseError(
            _("The signature takes {specs}.", specs=", ".join(map(str, signature))),
            allowed=_("one tensor of strings with one axis, of any length"),
            cure=_("Write None for a length that is not known, and call the vectorizer in `__call__`."),
        )


def _asked(loaded: Any, texts: Texts) -> dict[str, Any]:
    """Returns the labels and probabilities that the loaded signature gives for texts."""
    tf = start_tensorflow()
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    given: Mapping[str, Any] = signature(**{name: tf.constant(texts)})
    if given.keys() != {"label", "probability"} or given["label"].dtype != tf.string:
        raise CourseError(
            _(
                "`__call__` returns {given}.",
                given=", ".join(f"{name}: {each.dtype.name}" for name, each in given.items()),
            ),
            allowed=_('a dictionary with "label", strings, and "probability", numbers'),
            cure=_('Make texts of columns with tf.gather(["bad", "good"], ...) or tf.where.'),
        )
    labels = [label.decode() for label in np.ravel(given["label"].numpy())]
    return {"label": labels, "probability": given["probability"].numpy().tolist()}
