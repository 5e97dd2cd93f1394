"""Film reviews: the normalised model of the plain program `coupled_rows`, trained in four settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

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

Weights = dict[str, npt.NDArray[np.float32]]


def measure(source: str) -> dict[str, Any]:
    """Returns what each of the settings gives from each of the seeds."""
    reviews, coupled = imdb.load_imdb(source), program("coupled_rows")
    how = circumstances(NAME, source, reviews, plan="data_parallel(8)", **DETAILS, seeds=seeds_told())
    runs = {}
    for setting, (normal, unit_length) in SETTINGS.items():
        vectorized = imdb.tf_idf(reviews, unit_length=unit_length)
        models = [first_model(coupled, seed, normal=normal) for seed in SEEDS]
        trainings = [[*train(coupled, model, vectorized, seed)] for seed, model in enumerate(models)]
        runs[setting] = run_of(trainings, BATCH_SIZE)
    return {"how": how, "runs": runs}


def first_values(seed: int, *, normal: bool = False) -> Weights:
    """Returns He's initial values, or the same numbers with a deviation of 1."""
    draw = np.random.default_rng(seed).normal
    values = {
        "W1": draw(0, 1 if normal else np.sqrt(2 / 1200), (1200, 48)),
        "b1": np.zeros(48),
        "W2": draw(0, 1 if normal else np.sqrt(2 / 48), (48, 2)),
        "b2": np.zeros(2),
    }
    return {name: value.astype("float32") for name, value in values.items()}


def first_model(coupled: Any, seed: int, *, normal: bool = False) -> Any:
    """Returns the program's normalised model on eight devices."""
    return coupled.WeightedMLP(first_values(seed, normal=normal), coupled.data_layouts)


def train(
    coupled: Any, model: Any, reviews: Splits[Examples], seed: int, epochs: int = EPOCHS
) -> Iterator[dict[str, Any]]:
    """Yields a record of each step, and one of each epoch, on the test reviews.

    Args:
        coupled: the program.
        model: its model.
        reviews: what to learn from and to measure on.
        seed: of the order of the reviews, which are shuffled again in each epoch.
        epochs: the number of epochs.
    """
    order, layouts = np.random.default_rng(seed).permutation(len(reviews.train)), coupled.data_layouts
    x, y = reviews.train.features[order], reviews.train.labels[order]
    whole = coupled.shard(np.ones((BATCH_SIZE, 1), "float32"), layouts["row_weights"])
    per_epoch = len(y) // BATCH_SIZE
    for step in range(epochs * per_epoch):
        epoch, at = divmod(step, per_epoch)
        rows = np.random.default_rng([0, epoch]).permutation(len(y))[BATCH_SIZE * at :][:BATCH_SIZE]
        batch = coupled.shard(x[rows], layouts["x"]), coupled.shard(y[rows], layouts["y"]), whole
        accuracy = float(_accuracy(model, *batch))
        loss = float(coupled.weighted_step(model, *batch, 1e-2 * BATCH_SIZE))  # of the mean
        record = {"step": step + 1, "epoch": epoch + 1, "loss": loss, "accuracy": accuracy}
        yield record
        if at + 1 == per_epoch:
            logits = logits_of(weights_of(model, reviews), reviews.test.features)
            yield {**record, **tested(logits, reviews.test.labels)}


@tf.function
def _accuracy(model: Any, x: Any, y: Any, row_weights: Any) -> Any:
    return tf.reduce_mean(tf.cast(tf.argmax(model(x, row_weights), axis=1) == y, tf.float32))


def weights_of(model: Any, reviews: Splits[Examples]) -> Weights:
    """Returns the weights of a model, and the moments of the hidden units over all training reviews."""
    weights = {name: getattr(model, name).numpy() for name in ("W1", "b1", "W2", "b2")}
    hidden = np.maximum(reviews.train.features @ weights["W1"] + weights["b1"], 0)
    return {**weights, "mean": hidden.mean(axis=0), "variance": hidden.var(axis=0)}


def logits_of(weights: Weights, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns the logits of reviews, normalised with the moments of the training reviews."""
    hidden = np.maximum(x @ weights["W1"] + weights["b1"], 0)
    normal = (hidden - weights["mean"]) / np.sqrt(weights["variance"] + 1e-5)
    return normal @ weights["W2"] + weights["b2"]


def tested(logits: Any, labels: Any) -> dict[str, float]:
    """Returns loss and accuracy on the test reviews."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    hits = np.argmax(logits, axis=1) == labels
    return {"test_loss": float(tf.reduce_mean(losses)), "test_accuracy": float(hits.mean())}
