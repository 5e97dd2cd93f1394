"""The trained model beside its exports, each in a process of its own, asked for all test reviews as texts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib import setup

setup(devices=8)

from course_lib import syllabus  # noqa: E402
from course_lib.data.imdb import Reviews, text_layer, tf_idf  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.models.sentiment import MLP, initial_values  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.specs.plan import spatial_parallel  # noqa: E402
from course_lib.training.checkpoints import CheckpointFolder  # noqa: E402
from course_lib.training.run import train  # noqa: E402

REVIEWS = syllabus.module("save_and_serve.explorer").REVIEWS

tf = start_tensorflow()
Array = npt.NDArray[np.float64]

EPOCHS = 3
_ROWS = 2_000  # at a time, through the model on its mesh and through an export
_PROGRAM = """import json, sys
import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
for line in sys.stdin:
    print(json.dumps(served(tf.constant(json.loads(line))).numpy().tolist()))
"""


class Classifier(tf.Module):  # type: ignore[name-defined]
    """Texts in, probabilities out, as `save_and_serve` writes it."""

    def __init__(self, vectorizer: Any, model: MLP) -> None:
        super().__init__()
        self.vectorizer, self.model = vectorizer, model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: Any) -> Any:
        """Returns the probability of each class: `[batch] global` of strings to `[batch, classes] global`."""
        return tf.nn.softmax(self.model.evaluate_logits(tf.math.l2_normalize(self.vectorizer(texts), axis=1)))


def measure(reviews: Reviews) -> dict[str, Record]:
    """Trains spatial-parallel, exports in both ways, and asks both exports for the test reviews."""
    vectorized, model = tf_idf(reviews), MLP(initial_values(), spatial_parallel())
    vectorizer = text_layer(reviews.train.texts)
    with tempfile.TemporaryDirectory() as kept:
        folder = CheckpointFolder(Path(kept, "checkpoints"))
        for _record in train(model, vectorized.train, epochs=EPOCHS, checkpoints=folder):
            pass
        one = MLP(initial_values(seed=1))
        folder.restore_latest(model=one)
        trained, labels = _probabilities(model, vectorized.test.features), vectorized.test.labels
        answers = {}
        for kind, each in (("restored", one), ("shards", model)):
            classifier, path = Classifier(vectorizer, each), str(Path(kept, kind))
            tf.saved_model.save(classifier, path)
            answers[kind] = _asked(path, reviews.test.texts)
        good = _asked(path, REVIEWS)[:, 1]
    exported = {kind: _exported(each, trained, labels) for kind, each in answers.items()}
    return {
        "models": Record(trained=Record(accuracy=_accuracy(trained, labels)), **exported),
        "answers": Record({text: round(each, 2) for text, each in zip(REVIEWS, good.tolist(), strict=True)}),
    }


def _asked(path: str, texts: Sequence[str]) -> Array:
    """Returns the probabilities that a new process predicts, `[texts, classes] global`."""
    lines = [json.dumps(list(texts[start : start + _ROWS])) for start in range(0, len(texts), _ROWS)]
    # -I keeps the folder of the caller and PYTHONPATH out: the program needs TensorFlow alone.
    command = [sys.executable, "-I", "-c", _PROGRAM, path]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return np.concatenate([json.loads(line) for line in done.stdout.splitlines()])


def _exported(answers: Array, trained: Array, labels: npt.NDArray[np.int64]) -> Record:
    return Record(
        accuracy=_accuracy(answers, labels),
        otherwise=int((answers.argmax(axis=1) != trained.argmax(axis=1)).sum()),
        largest_difference=float(f"{np.abs(answers - trained).max():.2g}"),
    )


def _accuracy(probabilities: Array, labels: npt.NDArray[np.int64]) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())


def _probabilities(model: MLP, rows: npt.NDArray[np.float32]) -> Array:
    """Returns what the model on its mesh gives, `[rows, classes] global`."""
    evaluate = tf.function(model.evaluate_logits)
    found = []
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        filled = np.pad(part, ((0, -len(part) % model.place.batch_shards), (0, 0)))
        logits = model.place.fetch(evaluate(model.place.send(filled, model.spec.inputs)))
        found.append(tf.nn.softmax(np.float64(logits)).numpy()[: len(part)])
    return np.concatenate(found)
