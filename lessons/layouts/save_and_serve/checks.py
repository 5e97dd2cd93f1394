"""What code checks in this lesson: weights loaded from a checkpoint, and a class that is exported."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from course_lib import processes
from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array, NotAnswered, answered
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Texts = Sequence[str]
Weights = Mapping[str, Array]

_SHAPES = {"W1": (1200, 48), "b1": (48,), "W2": (48, 2), "b2": (2,)}  # as in the lesson
_GRID, _LINE = MeshSpec([("batch", 4), ("model", 2)]), MeshSpec([("batch", 8)])
_SPLIT = {"W1": [UNSHARDED, "model"], "b1": ["model"], "W2": ["model", UNSHARDED], "b2": [UNSHARDED]}
_REFUSED = "an error"


def _write(path: str, values: Weights, mesh: MeshSpec | None, model: str, renamed: str) -> None:
    """Writes a checkpoint such as the lesson's, of a model with other names where they are asked for."""
    with on_devices() as (tf, dtensor):

        def variable(name: str, value: Array) -> Any:
            if mesh is None:
                return tf.Variable(value)
            split = [dim if dim in dict(mesh.dims) else UNSHARDED for dim in _SPLIT[name]]
            return tf.experimental.dtensor.DVariable(dtensor.pack(value, LayoutSpec(split, mesh)))

        means, squares = (
            {name: variable(name, np.ones_like(value)) for name, value in values.items()}
            for _slot in range(2)
        )
        weights = {"V" if name == renamed else name: variable(name, value) for name, value in values.items()}
        saved = tf.train.Checkpoint(weights=weights, means=means, squares=squares)
        tf.train.Checkpoint(step=tf.Variable(252, dtype=tf.int64), **{model: saved}).write(path)


@exercise("save_and_serve-weights", right=Callable)
def weights(answer: Callable[[str], Any]) -> str | None:
    """The weights of a checkpoint that was written on some mesh, or an error where one is missing."""
    random = np.random.default_rng(6)
    cases: list[Case] = []
    expected: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:

        def case(
            mesh: MeshSpec | None, told: str, hint: str = "", model: str = "model", renamed: str = ""
        ) -> None:
            path = f"{folder}/{len(cases)}"
            values = {name: random.normal(size=shape).astype("float32") for name, shape in _SHAPES.items()}
            _write(path, values, mesh, model, renamed)
            expected[path] = _REFUSED if hint else values
            cases.append(Case((path,), hint, told))

        case(_GRID, _("a checkpoint from a mesh of {mesh}", mesh=_GRID))
        case(_LINE, _("a checkpoint from a mesh of {mesh}", mesh=_LINE))
        case(None, _("a checkpoint from one device"))
        silent = _(
            "Your function returns all the same, so a server would start with weights that nobody has"
            " trained. Ask the object that `read` returns, or look for the name in the file."
        )
        for name in _SHAPES:
            case(None, _("a checkpoint without the weight {name}", name=name), silent, renamed=name)
        case(None, _("a checkpoint that has no `model`"), silent, model="network")

        def run(function: Callable[[str], Any], path: str) -> Any:
            try:
                made = function(path)
            except (NotAnswered, limit.TooLong, limit.Over):
                raise
            except (Exception, SystemExit):
                if expected[path] is _REFUSED:
                    return _REFUSED
                raise
            return _arrays(made)

        return judge(answer, expected.__getitem__, cases, run=run, tolerance=0.0)


def _arrays(made: Any) -> Any:
    if not isinstance(made, Mapping) or made.keys() != _SHAPES.keys():
        raise CourseError(_("Return a dictionary with the keys {keys}.", keys=", ".join(_SHAPES)))
    dtensor, arrays = start_tensorflow().experimental.dtensor, {}
    for name, value in made.items():
        if dtensor.is_dtensor(value.value() if hasattr(value, "assign") else value):
            raise CourseError(_("{name} is still on a mesh. Return ordinary variables or arrays.", name=name))
        arrays[name] = np.asarray(value)
    return arrays


_BATCHES = (
    ["film", "good film", "a bad dull film", "unheard"],
    ["bad film", "good good film", "fine", "film bad dull", "dull"],
    ["good film"],
)
_EMPTY = ["film", ""]
_VOCABULARY = ("[UNK]", "film", "good", "bad", "dull", "fine")
_IDF = np.array([0.5, 1, 1.5, 1.5, 2, 2.5], np.float32)
_PROGRAM = """import json, sys
import tensorflow as tf

signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
(name,) = signature.structured_input_signature[1]
for texts in json.loads(sys.argv[2]):
    given = signature(**{name: tf.constant(texts)})
    values = {key: value.numpy().tolist() for key, value in given.items()}
    print(json.dumps(values, default=bytes.decode))
"""


def small_weights() -> dict[str, Array]:
    """Returns weights of few binary digits that tell the texts apart, none of them near the border."""
    random = np.random.default_rng(125)
    values = {name: random.integers(-4, 5, shape) / 8 for name, shape in _SHAPES.items()}
    return {name: value.astype(np.float32) for name, value in values.items()}


def _parts() -> tuple[Any, Any]:
    """Returns a vectorizer of six words and ordinary variables, as the lesson makes them."""
    tf = start_tensorflow()
    vectorizer = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
    vectorizer.set_vocabulary(list(_VOCABULARY), idf_weights=_IDF)
    return vectorizer, {name: tf.Variable(value) for name, value in small_weights().items()}


def _answered(texts: Texts, *, axis: int | None = 1, scaled: bool = True, of_good: bool = False) -> Any:
    """Returns labels and probabilities of texts of small letters, without TensorFlow."""
    rows = np.zeros((len(texts), len(_VOCABULARY)))
    for row, text in zip(rows, texts, strict=True):
        for token in text.split():
            row[_VOCABULARY.index(token) if token in _VOCABULARY else 0] += 1
    rows *= _IDF
    if scaled:
        rows /= np.maximum(np.linalg.norm(rows, axis=axis, keepdims=True), 1e-6)  # no word: stays 0
    values = small_weights()
    hidden = np.maximum(rows @ values["W1"][: len(_VOCABULARY)] + values["b1"], 0)
    powers = np.exp(hidden @ values["W2"] + values["b2"])
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    likelier = probabilities.argmax(axis=1)
    told = probabilities[:, 1] if of_good else probabilities.max(axis=1)
    return {"label": [("bad", "good")[column] for column in likelier], "probability": told.tolist()}


@exercise("save_and_serve-server", right=_answered)
def server(answer: Callable[[Any, Any], Any]) -> str | None:
    """A module that gives the label and the probability of each text, asked in another process."""
    tf = start_tensorflow()
    with limit.time_limit():
        made = answer(*_parts())
        hint = _not_to_be_exported(made, tf)
    if hint:
        return hint
    asked = [*_BATCHES, _EMPTY]
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(made, folder, signatures={"serving_default": made.__call__})
        done = processes.run([sys.executable, "-c", _PROGRAM, folder, json.dumps(asked)])
    if done.returncode:
        why = processes.died(done.returncode, done.stderr)
        return _("In another process your export fails: {error}", error=why)
    given = [json.loads(line) for line in done.stdout.splitlines()]
    empty = _(
        'The text `""` has no words, so its row is all zeros, and its length is 0. What do you divide by?'
        " `tf.math.l2_normalize` leaves such a row as it is."
    )
    return judge(
        answer,
        _answered,
        [*(Case((texts,)) for texts in _BATCHES), Case((_EMPTY,), empty)],
        misconceptions={
            partial(_answered, axis=None): _(
                "What is answered to a text depends on what else is asked: scale each row for itself."
            ),
            partial(_answered, scaled=False): _(
                "The model was trained on rows of length 1; these rows are as the vectorizer makes them."
            ),
            partial(_answered, of_good=True): _(
                'This is the probability of "good" for every text. Give that of the label.'
            ),
        },
        run=lambda _make, texts: given[asked.index(texts)],
        advice=_(
            "Go through it once more, with `self.vectorizer` and `self.weights`: rows of length 1, logits,"
            ' `tf.nn.softmax`. The label is "bad" or "good", whichever is more probable.'
        ),
    )


def _not_to_be_exported(made: Any, tf: Any) -> str | None:
    """Returns why what a reader's class makes cannot serve texts, as far as its signature tells."""
    function = answered(made.__call__)
    signature = getattr(function, "input_signature", None)
    if not signature:
        return _("`__call__` needs `@tf.function(input_signature=[tf.TensorSpec(...)])`.")
    if [(spec.dtype, str(spec.shape)) for spec in signature] != [(tf.string, "(None,)")]:
        return _(
            "The signature takes {specs}. Let it take one tensor of strings with one axis, of any length:"
            " write None for a length that is not known.",
            specs=", ".join(map(str, signature)),
        )
    try:
        function.get_concrete_function()  # an error in it is the reader's, and comes before it is saved
    except AttributeError as error:
        if "idf_weights" not in str(error):
            raise
        return _(
            "Your class makes a vectorizer that has seen no texts. Take the one that it is given: the"
            " weights were trained with its words."
        )
    return None
