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
    trained = tf.nn.softmax(training.logits_of(weights, vectorized.test.features)).numpy()
    with TemporaryDirectory() as folder:
        saved = tf.train.Checkpoint(model=serving.MLP(weights)).write(f"{folder}/trained")
        zeros = {name: np.zeros(shape, "float32") for name, shape in serving.SHAPES.items()}
        for kind, layouts in {"restored": None, "shards": serving.LAYOUTS}.items():
            served = serving.MLP(zeros, layouts)
            tf.train.Checkpoint(model=served).read(saved).assert_consumed()
            path = Path(folder, kind)
            classifier = serving.Classifier(text_layer(reviews.train.texts), served)
            tf.saved_model.save(classifier, str(path))
            parts = [texts[at : at + ROWS] for at in range(0, len(texts), ROWS)]
            *parts_answered, good = serving.ask(path, *parts, ASKED)
            answers[kind] = np.concatenate(parts_answered)
    exported = {kind: _exported(each, trained, labels) for kind, each in answers.items()}
    return {
        "how": circumstances(training.NAME, source, reviews, **training.DETAILS, plan="data_parallel(8)"),
        "models": Record(trained=Record(accuracy=_accuracy(trained, labels)), **exported),
        "answers": Record(
            {text: round(each, 2) for text, each in zip(ASKED, good[:, 1].tolist(), strict=True)}
        ),
    }


def _exported(answers: Array, trained: Array, labels: npt.NDArray[np.int64]) -> Record:
    return Record(
        accuracy=_accuracy(answers, labels),
        otherwise=int((answers.argmax(axis=1) != trained.argmax(axis=1)).sum()),
        largest_difference=float(f"{np.abs(answers - trained).max():.2g}"),
    )


def _accuracy(probabilities: Array, labels: npt.NDArray[np.int64]) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())
