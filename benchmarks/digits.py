"""Handwritten digits: what the plain program `from_scratch` defines, trained on eight devices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.programs import program
from benchmarks.records import SEEDS, circumstances, run_of, seeds_told
from course_lib.data.images import Images, load_mnist
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

BATCH_SIZE, EPOCHS, LAYERS = 128, 3, (784, 700, 500, 10)
DETAILS = {
    "plan": "data_parallel(8)",
    "model": "-".join(map(str, LAYERS)),
    "batch_size": str(BATCH_SIZE),
    "last_batch": "drop",
    "optimizer": "Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07)",
}


def measure(source: str, num_train: int, num_test: int) -> dict[str, Any]:
    """Returns what each seed gives with so many digits; those that do not fill a batch are left out."""
    images = load_mnist(source, num_train=num_train, num_test=num_test)
    how = circumstances("mnist 3.0.1", source, images, **DETAILS, seeds=seeds_told())
    return {"how": how, "runs": {"adam": run_of([[*_records(images, seed)] for seed in SEEDS], BATCH_SIZE)}}


def _records(images: Images, seed: int) -> Iterator[dict[str, Any]]:
    from_scratch = program("from_scratch")
    on_mesh, variable = from_scratch.on_mesh, from_scratch.dtensor.DVariable
    model = from_scratch.MLP([on_mesh([value] * 8) for value in _xavier(seed)], variable)
    adam = from_scratch.Adam(model.weights, variable)
    evaluate = tf.function(from_scratch.results_and_gradients)

    def split(rows: Any, of: Any) -> list[Any]:
        return [on_mesh(np.split(array[rows], 8), "batch") for array in (of.features, of.labels)]

    per_epoch = len(images.train) // BATCH_SIZE
    for epoch in range(1, EPOCHS + 1):
        order = np.random.default_rng([seed, epoch]).permutation(len(images.train))
        for at in range(per_epoch):
            batch = split(order[BATCH_SIZE * at : BATCH_SIZE * (at + 1)], images.train)
            loss, accuracy = map(float, from_scratch.train_step(model, adam, *batch)[:2])
            step = per_epoch * (epoch - 1) + at + 1
            record = {"step": step, "epoch": epoch, "loss": loss, "accuracy": accuracy}
            yield record
        loss, accuracy = map(float, evaluate(model, *split(slice(None), images.test))[:2])
        yield {**record, "test_loss": loss, "test_accuracy": accuracy}


def _xavier(seed: int) -> list[Any]:
    """Returns the first values of the variables: Xavier's uniform weights, and biases of zero."""
    random, values = np.random.default_rng(seed), []
    for inputs, outputs in pairwise(LAYERS):
        limit = np.sqrt(6 / (inputs + outputs))
        values += [random.uniform(-limit, limit, (inputs, outputs)), np.zeros(outputs)]
    return [value.astype(np.float32) for value in values]
