"""Film reviews: the plain program `a_run`, at a constant learning rate and at one that falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.programs import program
from benchmarks.records import SEEDS, circumstances, run_of, seeds_told
from benchmarks.reviews import NAME, first_values
from course_lib.data import imdb
from course_lib.data.examples import Examples, Splits
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

BATCH_SIZE, EPOCHS = 64, 5


def measure(source: str) -> dict[str, Any]:
    """Returns what each of the two schedules gives from each of the seeds."""
    texts, a_run = imdb.load_imdb(source), program("a_run")
    details = {"batch_size": str(BATCH_SIZE), "optimizer": "Adam, 3e-3"}
    how = circumstances(NAME, source, texts, plan="data_parallel(8)", **details, seeds=seeds_told())
    schedules = {"constant": lambda _step, _last_step: np.float32(3e-3), "falling": a_run.falling}
    reviews, runs = imdb.tf_idf(texts), {}
    for name, rate_of in schedules.items():
        runs[name] = run_of([[*_train(a_run, reviews, rate_of, seed)] for seed in SEEDS], BATCH_SIZE)
    return {"how": how, "runs": runs}


def _train(a_run: Any, reviews: Splits[Examples], rate_of: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Returns the program's records, of the course's reviews; the test reviews are held out."""
    order = np.random.default_rng(seed).permutation(len(reviews.train))
    a_run.train_x, a_run.train_y = reviews.train.features[order], reviews.train.labels[order]
    a_run.held_out_x, a_run.held_out_y = reviews.test.features, reviews.test.labels
    a_run.STEPS_PER_EPOCH, a_run.values = len(order) // BATCH_SIZE, first_values(seed)
    step = tf.Variable(0, dtype=tf.int64)
    last_step = EPOCHS * a_run.STEPS_PER_EPOCH
    return a_run.train(a_run.Model(a_run.layouts), a_run.layouts, step, last_step, rate_of)
