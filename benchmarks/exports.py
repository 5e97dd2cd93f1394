"""The trained model beside its exports, each in a process of its own, asked for all test reviews as texts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from course_lib import setup

setup(devices=8)

from course_lib.data.imdb import tf_idf  # noqa: E402
from course_lib.data.text import Reviews  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.models.model import Model  # noqa: E402
from course_lib.models.sentiment import MLP, initial_values  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.specs.plan import spatial_parallel  # noqa: E402
from course_lib.training.checkpoints import CheckpointFolder  # noqa: E402
from course_lib.training.run import train  # noqa: E402
from lessons.lesson_06_save_and_serve.explorer import REVIEWS  # noqa: E402
from lessons.lesson_06_save_and_serve.serving import fresh  # noqa: E402
from lessons.lesson_06_save_and_serve.serving.exporting import export  # noqa: E402
from lessons.lesson_06_save_and_serve.serving.loading import restore_model  # noqa: E402

Array = npt.NDArray[np.float64]

EPOCHS = 3
_ROWS = 2_000  # at a time, through the model on its mesh


def measure(reviews: Reviews, epochs: int = EPOCHS) -> dict[str, Record]:
    """Trains spatial-parallel, exports in both ways, and asks both exports for the test reviews."""
    vectorized, model = tf_idf(reviews), MLP(initial_values(), spatial_parallel())
    with tempfile.TemporaryDirectory() as kept:
        folder = CheckpointFolder(Path(kept, "checkpoints"))
        for _record in train(model, vectorized.train, epochs=epochs, checkpoints=folder):
            pass
        one = MLP(initial_values(seed=1))
        restore_model(folder, one)
        paths = {
            kind: export(each, vectorized.vectorizer, Path(kept, kind))
            for kind, each in (("restored", one), ("shards", model))
        }
        trained, labels = _probabilities(model, vectorized.test.features), vectorized.test.labels
        answers = {kind: fresh.ask(path, reviews.test.texts) for kind, path in paths.items()}
        good = fresh.ask(paths["shards"], REVIEWS)[:, 1]
    exported = {kind: _exported(each, trained, labels) for kind, each in answers.items()}
    return {
        "models": Record(trained=Record(accuracy=_accuracy(trained, labels)), **exported),
        "answers": Record({text: round(each, 2) for text, each in zip(REVIEWS, good.tolist(), strict=True)}),
    }


def _exported(answers: Array, trained: Array, labels: npt.NDArray[np.int64]) -> Record:
    return Record(
        accuracy=_accuracy(answers, labels),
        otherwise=int((answers.argmax(axis=1) != trained.argmax(axis=1)).sum()),
        largest_difference=float(f"{np.abs(answers - trained).max():.2g}"),
    )


def _accuracy(probabilities: Array, labels: npt.NDArray[np.int64]) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())


def _probabilities(model: Model, rows: npt.NDArray[np.float32]) -> Array:
    """Returns what the model on its mesh gives, `[rows, classes] global`."""
    tf = start_tensorflow()
    evaluate = tf.function(model.evaluate_logits)
    found = []
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        filled = np.pad(part, ((0, -len(part) % model.place.batch_shards), (0, 0)))
        logits = model.place.fetch(evaluate(model.place.send(filled, model.spec.inputs)))
        found.append(tf.nn.softmax(np.float64(logits)).numpy()[: len(part)])
    return np.concatenate(found)
