"""A trained model beside its exports, each in a process of its own, asked for all test reviews as texts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import reviews as training
from benchmarks.programs import program
from benchmarks.records import circumstances
from course_lib import syllabus
from course_lib.data.imdb import load_imdb, text_layer, tf_idf
from course_lib.measured.files import Record
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

ASKED = syllabus.module("save_and_serve.explorer").REVIEWS
ROWS = 2_000  # texts at a time

Array = npt.NDArray[np.float64]


def measure(source: str) -> dict[str, Any]:
    """Trains the model of `coupled_rows`, exports as `save_and_serve` does, both ways, and asks both."""
    reviews = load_imdb(source)
    vectorized, coupled, serving = tf_idf(reviews), program("coupled_rows"), program("save_and_serve")
    model = training.first_model(coupled, 0)
    for _record in training.train(coupled, model, vectorized, 0):
        pass
    labels, texts, answers = reviews.test.labels, reviews.test.texts, {}
    weights = training.weights_of(model, vectorized)
    trained = tf.nn.softmax(training.logits_of(weights, vectorized.test.features)).numpy()[:, 1]
    # The program's model does not normalise; this one does, with the moments of the training reviews.
    serving.logits_of = _logits_of
    mesh, split = serving.mesh, serving.layouts
    per_unit = serving.dtensor.Layout(["model"], mesh)
    meshed = {**split, "mean": per_unit, "variance": per_unit}
    with TemporaryDirectory() as folder:
        saved = tf.train.Checkpoint(weights=_variables(serving, weights, {})).write(f"{folder}/trained")
        zeros = {name: np.zeros_like(value) for name, value in weights.items()}
        for kind, layouts in {"restored": {}, "shards": meshed}.items():
            served = _variables(serving, zeros, layouts)
            tf.train.Checkpoint(weights=served).read(saved).assert_consumed()
            path = Path(folder, kind)
            serving.export(serving.ReviewServer(text_layer(reviews.train.texts), served), path)
            parts = [texts[at : at + ROWS] for at in range(0, len(texts), ROWS)]
            answers[kind] = np.concatenate([serving.ask(path, part) for part in parts])
            asked = serving.ask(path, ASKED)
    exported = {kind: _exported(each, trained, labels) for kind, each in answers.items()}
    return {
        "how": circumstances(training.NAME, source, reviews, **training.DETAILS, plan="data_parallel(8)"),
        "models": Record(trained=Record(accuracy=_accuracy(trained, labels)), **exported),
        "answers": Record({text: round(each, 2) for text, each in zip(ASKED, asked.tolist(), strict=True)}),
    }


def _variables(serving: Any, values: training.Weights, layouts: dict[str, Any]) -> dict[str, Any]:
    return {name: serving.variable(value, layouts.get(name)) for name, value in values.items()}


def _logits_of(weights: Any, x: Any) -> Any:
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    normal = (hidden - weights["mean"]) / tf.sqrt(weights["variance"] + 1e-5)
    return normal @ weights["W2"] + weights["b2"]


def _exported(answers: Array, trained: Array, labels: npt.NDArray[np.int64]) -> Record:
    return Record(
        accuracy=_accuracy(answers, labels),
        otherwise=int(((answers > 0.5) != (trained > 0.5)).sum()),
        largest_difference=float(f"{np.abs(answers - trained).max():.2g}"),
    )


def _accuracy(good: Array, labels: npt.NDArray[np.int64]) -> float:
    return float(((good > 0.5) == (labels == 1)).mean())
