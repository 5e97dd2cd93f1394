"""Film reviews: what the plain program `a_run` defines, trained on eight devices in four settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.programs import program
from benchmarks.records import SEEDS, circumstances, run_of, seeds_told
from course_lib.data import imdb
from course_lib.data.examples import Examples, Splits
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

BATCH_SIZE, EPOCHS = 64, 3
NAME, DETAILS = "imdb_reviews/plain_text 1.0.0", {"batch_size": "64", "learning_rate": "0.01"}
SETTINGS = {  # whether weights begin with N(0, 1), as in TensorFlow's tutorial; whether rows have unit length
    "tutorial": (True, False),
    "he": (False, False),
    "unit": (True, True),
    "ours": (False, True),
}


def measure(source: str) -> dict[str, Any]:
    """Returns what each of the settings gives from each of the seeds."""
    reviews, a_run = imdb.load_imdb(source), program("a_run")
    how = circumstances(NAME, source, reviews, plan="data_parallel(8)", **DETAILS, seeds=seeds_told())
    runs = {}
    for setting, (normal, unit_length) in SETTINGS.items():
        vectorized = imdb.tf_idf(reviews, unit_length=unit_length)
        models = [first_model(a_run, seed, normal=normal) for seed in SEEDS]
        trainings = [[*train(a_run, model, vectorized, seed)] for seed, model in enumerate(models)]
        runs[setting] = run_of(trainings, BATCH_SIZE)
    return {"how": how, "runs": runs}


def first_model(a_run: Any, seed: int, *, normal: bool = False) -> Any:
    """Returns the program's model, whose weights are He's, or the same numbers with a deviation of 1."""
    model = a_run.MLP(seed)
    if normal:
        for weight in (model.W1, model.W2):
            weight.assign(weight / np.float32(np.sqrt(2 / weight.shape[0])))
    return model


def train(
    a_run: Any, model: Any, reviews: Splits[Examples], seed: int, epochs: int = EPOCHS
) -> Iterator[dict[str, Any]]:
    """Yields the program's records, and one of each epoch; before it the moving moments catch up.

    Args:
        a_run: the program.
        model: its model.
        reviews: what to learn from and to measure on.
        seed: of the order of the reviews, which the program shuffles again in each epoch.
        epochs: the number of epochs.
    """
    order = np.random.default_rng(seed).permutation(len(reviews.train))
    x, y = reviews.train.features[order], reviews.train.labels[order]
    for record in a_run.records(model, tf.Variable(0, dtype=tf.int64), x, y, epochs):
        yield record
        if record["step"] % (len(y) // BATCH_SIZE) == 0:
            for at in range(0, 32 * BATCH_SIZE, BATCH_SIZE):
                _move_moments(model, a_run.split_rows(x[at : at + BATCH_SIZE]))
            yield {**record, **a_run.evaluate(model, reviews.test.features, reviews.test.labels)}


@tf.function
def _move_moments(model: Any, x: Any) -> None:
    """Lets the moving moments catch up with the weights, as the lesson does in a cell."""
    _logits, (mean, variance) = model(x)
    model.mean.assign(0.9 * model.mean + 0.1 * mean)
    model.variance.assign(0.9 * model.variance + 0.1 * variance)
