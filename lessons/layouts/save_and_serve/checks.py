"""What code checks in this lesson: gathering the shards of a variable, and a class that is exported."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from course_lib import processes
from course_lib.errors import CourseError
from course_lib.exercises import limit
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array, answered
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.save_and_serve.small_model import logits_of, small_model, small_values

Texts = Sequence[str]

_LAYOUTS = (
    LayoutSpec([UNSHARDED, "model"], MeshSpec([("batch", 4), ("model", 2)])),
    LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)])),
    LayoutSpec(["feature", "model"], MeshSpec([("model", 2), ("feature", 4)])),
    LayoutSpec(["model"], MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])),
    LayoutSpec([UNSHARDED, UNSHARDED], MeshSpec([("batch", 8)])),
)


@exercise("save_and_serve-gather", right=Callable)
def gather(answer: Callable[[Any], Any]) -> str | None:
    """The whole value of a DVariable, an array."""
    cases = []
    for layout in _LAYOUTS:
        shape = (8, 16)[: layout.num_axes]
        told = _("a variable of the shape {shape} with the layout {layout}", shape=shape, layout=layout)
        values = np.random.default_rng(6).permutation(np.prod(shape)).astype(np.float32)
        cases.append(Case((values.reshape(shape), layout), told=told))
    large = np.arange(2**24, 2**24 + 8)  # neighbours that float32 cannot tell apart
    cases.append(Case((large, _LAYOUTS[3]), _("Keep the type of the numbers: that of `variable.dtype`.")))

    def run(function: Callable[[Any], Any], whole: Array, layout: LayoutSpec) -> Any:
        with on_devices() as (tf, dtensor):
            made = function(tf.experimental.dtensor.DVariable(dtensor.pack(whole, layout)))
            if tf.is_tensor(made) and tf.experimental.dtensor.is_dtensor(made):
                raise CourseError(_("What is returned is still a DTensor on its mesh. Return an array."))
            return made

    return judge(
        answer,
        lambda whole, _layout: whole,
        cases,
        misconceptions={
            lambda whole, layout: np.concatenate(layout.of(whole.shape).split(whole)): _(
                "This lays the shards one after the other, in the order of the devices. Which part of the"
                " whole does each of them hold?"
            ),
        },
        run=run,
        tolerance=0.0,
        advice=_(
            "For an axis that is split the layout names a mesh dimension: "
            "the place of the device along it counts blocks."
        ),
    )


_BATCHES = (
    ["film", "good film", "a bad dull film", ""],
    ["bad film", "good good film", "fine", "film bad dull", "dull"],
    ["good film"],
)
_COLUMNS = 1200  # as in the lesson: a reader's class may hold its `Classifier`
_VOCABULARY = ("[UNK]", "film", "good", "bad", "dull", "fine")
_WEIGHTS = np.array([0.5, 1, 1.5, 1.5, 2, 2.5], np.float32)
_PROGRAM = """import json, sys
import tensorflow as tf

signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
(name,) = signature.structured_input_signature[1]
for texts in json.loads(sys.argv[2]):
    given = signature(**{name: tf.constant(texts)})
    values = {key: value.numpy().tolist() for key, value in given.items()}
    print(json.dumps(values, default=bytes.decode))
"""


def _parts() -> tuple[Any, Any]:
    """Returns a vectorizer of six words and a model of ordinary variables, as the lesson makes them."""
    tf, values = start_tensorflow(), small_values()
    values["W1"] = np.pad(values["W1"], [(0, _COLUMNS - len(_VOCABULARY)), (0, 0)])
    vectorizer = tf.keras.layers.TextVectorization(_COLUMNS, output_mode="tf_idf", pad_to_max_tokens=True)
    vectorizer.set_vocabulary(list(_VOCABULARY), idf_weights=_WEIGHTS)
    return vectorizer, small_model(values, tf.Variable)


def _predicted(texts: Texts, *, own_moments: bool = False, scaled: bool = True) -> dict[str, list[Any]]:
    """Returns labels and probabilities of texts of small letters, without TensorFlow."""
    rows = np.zeros((len(texts), len(_VOCABULARY)))
    for row, text in zip(rows, texts, strict=True):
        for token in text.split():
            row[_VOCABULARY.index(token) if token in _VOCABULARY else 0] += 1
    rows *= _WEIGHTS
    if scaled:
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)  # no word: stays 0
    powers = np.exp(logits_of(small_values(), rows, own_moments=own_moments))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    labels = [("bad", "good")[column] for column in probabilities.argmax(axis=1)]
    return {"label": labels, "probability": probabilities.max(axis=1).tolist()}


@exercise("save_and_serve-server", right=_predicted)
def server(answer: Callable[[Any, Any], Any]) -> str | None:
    """A module that gives the label and the probability of each text, asked in another process."""
    tf = start_tensorflow()
    with limit.time_limit():
        made = answer(*_parts())
        hint = _not_to_be_exported(made, tf)
    if hint:
        return hint
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(made, folder, signatures={"serving_default": made.__call__})
        done = processes.run([sys.executable, "-c", _PROGRAM, folder, json.dumps(_BATCHES)])
    if done.returncode:
        why = processes.died(done.returncode, done.stderr)
        return _("In another process your export fails: {error}", error=why)
    given = [json.loads(line) for line in done.stdout.splitlines()]
    return judge(
        answer,
        _predicted,
        [Case((texts,)) for texts in _BATCHES],
        misconceptions={
            partial(_predicted, own_moments=True): _(
                "What is predicted for a text depends on what else is asked: this normalises with the moments"
                " of the texts. Take `model.mean` and `model.variance`."
            ),
            partial(_predicted, scaled=False): _(
                "The model was trained on rows of length 1; these rows are as the vectorizer makes them."
            ),
        },
        run=lambda _make, texts: given[_BATCHES.index(texts)],
        advice=_(
            "Go through it once more, with `self.vectorizer` and `self.model`: rows of length 1, `hidden`,"
            " `logits` with the moving mean and then the moving variance, `tf.nn.softmax`."
            ' The label is "bad" or "good", whichever is more probable.'
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
    function.get_concrete_function()  # an error in it is the reader's, and comes before it is saved
    return None
