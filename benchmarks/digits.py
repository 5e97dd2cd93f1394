"""Handwritten digits: what the plain program `from_scratch` defines, trained on eight devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import plain_loop  # noqa: E402
from benchmarks.histories import run_of  # noqa: E402
from course_lib.data.images import ImageSet  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.training.records import EpochRecord, History, StepRecord  # noqa: E402

PROGRAM = plain_loop.PROGRAM.with_name("from_scratch.py")
BATCH_SIZE, LAYERS = 128, (784, 700, 500, 10)
SETTINGS = {
    "plan": "data_parallel(8)",
    "model": "-".join(map(str, LAYERS)),
    "batch_size": str(BATCH_SIZE),
    "last_batch": "drop",
    "optimizer": "Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07)",
}


def seeded_run(images: ImageSet, epochs: int, seeds: Sequence[int]) -> Record:
    """Returns what each of the seeds gives; an epoch leaves the images out that do not fill a batch."""
    return run_of([History.of(_records(images, epochs, seed)) for seed in seeds])


def _records(images: ImageSet, epochs: int, seed: int) -> Iterator[StepRecord | EpochRecord]:
    program = plain_loop.definitions(PROGRAM)
    tf, variable = program["tf"], program["dtensor"].DVariable
    model = program["MLP"]([program["on_mesh"]([value] * 8) for value in _xavier(seed)], variable)
    adam = program["Adam"](model.weights, variable)
    evaluate = tf.function(program["results_and_gradients"])

    def split(rows: Any, of: Any) -> list[Any]:
        arrays = of.features[rows], of.labels[rows]
        return [program["on_mesh"](np.split(array, 8), "batch") for array in arrays]

    per_epoch = len(images.train) // BATCH_SIZE
    for epoch in range(1, epochs + 1):
        order, found = np.random.default_rng([seed, epoch]).permutation(len(images.train)), []
        for at in range(per_epoch):
            rows = order[BATCH_SIZE * at : BATCH_SIZE * (at + 1)]
            loss, accuracy = map(float, program["train_step"](model, adam, *split(rows, images.train))[:2])
            found.append((loss, accuracy))
            yield StepRecord(per_epoch * (epoch - 1) + at + 1, epoch, loss, accuracy, BATCH_SIZE, 0.0)
        loss, accuracy = np.mean(found, axis=0).tolist()
        of_test, right = map(float, evaluate(model, *split(slice(None), images.test))[:2])
        yield EpochRecord(epoch, per_epoch * epoch, loss, accuracy, of_test, right, None)


def _xavier(seed: int) -> list[Any]:
    """Returns the first values of the variables: Xavier's uniform weights, and biases of zero."""
    random, values = np.random.default_rng(seed), []
    for inputs, outputs in pairwise(LAYERS):
        limit = np.sqrt(6 / (inputs + outputs))
        values += [random.uniform(-limit, limit, (inputs, outputs)), np.zeros(outputs)]
    return [value.astype(np.float32) for value in values]
