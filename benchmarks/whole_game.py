"""The runs of the plain program `whole_game`, on the course's reviews."""

from __future__ import annotations

from typing import Any

from benchmarks.programs import program
from benchmarks.records import DIGITS, circumstances
from course_lib.data.imdb import load_imdb, tf_idf


def measure(source: str) -> dict[str, Any]:
    """Returns loss and accuracy of each step of each run, and the accuracy on held-out reviews."""
    game, texts = program("whole_game"), load_imdb(source)
    reviews = tf_idf(texts)
    game.train_x, game.train_y = reviews.train.features, reviews.train.labels
    game.test_x, game.test_y = reviews.test.features, reviews.test.labels
    runs = {
        name: {
            "losses": [round(record["loss"], DIGITS) for record in records],
            "accuracies": [round(record["accuracy"], DIGITS) for record in records],
            "test_accuracy": round(accuracy, DIGITS),
        }
        for name, records, accuracy in game.runs()
    }
    return {"how": circumstances("", source, texts, batch_size="64", optimizer="Adam, 3e-3"), "runs": runs}
