"""What the plain program `any_mesh` defines, trained in each scheme and held against one device.

All get the same batches in the same order, from equal initial values or from one checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import reviews as training
from benchmarks.programs import program
from benchmarks.records import Records, circumstances, run_of, steps_of
from course_lib.data.examples import Examples, Splits
from course_lib.data.imdb import load_imdb, tf_idf
from course_lib.measured.files import Record
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

ONE_DEVICE = "one"  # the run that the others are compared with
EPOCHS, FIRST_STEPS = 3, 20

Weights = dict[str, Any]
Taken = tuple[Records, Weights]  # the records of a run, and the weights at its end


def measure(source: str) -> dict[str, Any]:
    """Returns what came of training on one device and in each scheme, in both ways."""
    texts = load_imdb(source)
    schemes = Schemes(tf_idf(texts))
    return {
        "how": circumstances(training.NAME, source, texts, batch_size="64", learning_rate="0.003"),
        "equal": schemes.from_equal_values(),
        "continued": schemes.from_a_checkpoint(),
    }


class Schemes:
    """The program, on reviews to learn from and to measure on."""

    def __init__(self, reviews: Splits[Examples]) -> None:
        self._reviews, self._program = reviews, program("any_mesh")
        self._program.train_x, self._program.train_y = reviews.train.features, reviews.train.labels
        self._per_epoch = len(reviews.train) // training.BATCH_SIZE

    def from_equal_values(self) -> dict[str, Record]:
        """Returns what equal initial values give on one device and in each scheme."""
        with TemporaryDirectory() as nothing:
            return self._compared(nothing, EPOCHS)

    def from_a_checkpoint(self) -> dict[str, Record]:
        """Returns what another epoch gives on one device and in each scheme after a data-parallel one."""
        with TemporaryDirectory() as kept:
            list(self._epoch("data", kept))
            return self._compared(kept, epochs=1)

    def _compared(self, start: str, epochs: int) -> dict[str, Record]:
        one, *others = (self._taken(scheme, start, epochs) for scheme in (ONE_DEVICE, *self._program.meshes))
        runs = {ONE_DEVICE: run_of([one[0]], training.BATCH_SIZE)}
        for scheme, taken in zip(self._program.meshes, others, strict=True):
            runs[scheme] = run_of([taken[0]], training.BATCH_SIZE)
            runs[scheme] |= _differences(taken, one)
        return runs

    def _taken(self, scheme: str, start: str, epochs: int) -> Taken:
        """Returns what so many epochs give, from the checkpoint in `start` if there is one."""
        with TemporaryDirectory() as folder:
            shutil.copytree(start, folder, dirs_exist_ok=True)
            records = [record for _epoch in range(epochs) for record in self._epoch(scheme, folder)]
            return records, self._weights(folder)

    def _epoch(self, scheme: str, folder: str) -> Iterator[dict[str, Any]]:
        """Yields the program's records, and one of what its checkpoint gives on the test reviews."""
        for record in self._program.train(self._program.LAYOUTS[scheme], folder, self._per_epoch):
            yield record
        logits = self._program.logits_of(self._weights(folder), self._reviews.test.features)
        yield {**record, **training.tested(logits, self._reviews.test.labels)}

    def _weights(self, folder: str) -> Weights:
        model = self._program.Model(self._program.LAYOUTS[ONE_DEVICE])
        tf.train.Checkpoint(model=model).restore(tf.train.latest_checkpoint(folder)).expect_partial()
        return {name: weight.numpy() for name, weight in model.weights.items()}


def _differences(taken: Taken, of_one_device: Taken) -> Record:
    """Returns the largest differences from one device, with three digits: in the first steps, and in all."""
    (records, weights), (reference, of_reference) = taken, of_one_device
    pairs = list(zip(steps_of(records), steps_of(reference), strict=True))
    first, whole = (
        {name: max(abs(ours[name] - theirs[name]) for ours, theirs in part) for name in ("loss", "accuracy")}
        for part in (pairs[:FIRST_STEPS], pairs)
    )
    whole["weights"] = max(float(np.abs(weights[name] - of_reference[name]).max()) for name in weights)
    return Record(first=_rounded(first), whole=_rounded(whole))


def _rounded(values: Mapping[str, float]) -> Record:
    return Record({name: float(f"{value:.3g}") for name, value in values.items()})
