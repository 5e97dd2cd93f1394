"""Garments: what the plain program `custom_training` defines, trained on replicas and restored."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import plain_loop  # noqa: E402
from benchmarks.histories import run_of  # noqa: E402
from course_lib.data.images import ImageSet, LabelledImages  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.training.records import EpochRecord, History, StepRecord  # noqa: E402

tf = start_tensorflow()

PROGRAM = plain_loop.PROGRAM.with_name("custom_training.py")
PER_REPLICA = 64
SETTINGS = {
    "model": "Conv2D(32, 3), Conv2D(64, 3), Dense(64), Dense(10)",
    "last_batch": "smaller",
    "optimizer": "tf.keras.optimizers.Adam()",
}


def seeded_run(images: ImageSet, num_replicas: int, epochs: int, seeds: Sequence[int]) -> Record:
    """Returns what each of the seeds gives, and what their last checkpoints give without a strategy."""
    runs = [_Run(images, num_replicas, seed) for seed in seeds]
    histories = [History.of(run.records(epochs)) for run in runs]
    return run_of(histories, restored=[run.restored() for run in runs])


class _Run:
    def __init__(self, images: ImageSet, num_replicas: int, seed: int) -> None:
        self.images, self.size, self.seed = images, PER_REPLICA * num_replicas, seed
        self.program = plain_loop.definitions(PROGRAM)
        devices = [f"CPU:{replica}" for replica in range(num_replicas)]
        self.strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
        self.model, self.adam = self._build(self.strategy, seed)

    def _build(self, strategy: Any, seed: int) -> tuple[Any, Any]:
        def seeded() -> Any:
            tf.keras.utils.set_random_seed(seed)
            return self.program["convolutional"]()

        return self.program["build"](strategy, seeded)

    def records(self, epochs: int) -> Iterator[StepRecord | EpochRecord]:
        """Trains with the program's loop, and yields its records and one of each epoch."""
        examples, found = self.images.train, []
        rows = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
        batches = rows.shuffle(len(examples), seed=self.seed).batch(self.size)  # anew in each epoch
        distributed = self.strategy.experimental_distribute_dataset(batches.repeat())
        step, per_epoch = self.program["replica_step"], len(batches)
        with tempfile.TemporaryDirectory() as folder:
            for record in self.program["train"](
                self.strategy, self.model, self.adam, step, distributed, per_epoch, epochs, folder
            ):
                last = record["step"] % per_epoch == 0
                size = len(examples) - self.size * (per_epoch - 1) if last else self.size
                yield StepRecord(**record, examples=size, seconds=0.0)
                found.append((record["loss"] * size, record["accuracy"] * size))
                if last:
                    loss, accuracy = (np.sum(found, axis=0) / len(examples)).tolist()
                    probabilities = _probabilities(self.model, self.images.test)
                    tested = _result(probabilities, self.images.test.labels)
                    yield EpochRecord(record["epoch"], record["step"], loss, accuracy, *tested, None)
                    found = []

    def restored(self) -> Record:
        """Returns how the trained model, restored from a checkpoint without a strategy, answers beside it."""
        alone, its_adam = self._build(tf.distribute.get_strategy(), self.seed + 1)  # other values
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(model=self.model, adam=self.adam).write(f"{folder}/last")
            tf.train.Checkpoint(model=alone, adam=its_adam).read(path).assert_consumed()
        trained, restored = (_probabilities(model, self.images.test) for model in (self.model, alone))
        return Record(
            test_accuracy=_result(restored, self.images.test.labels)[1],
            otherwise=int((restored.argmax(axis=1) != trained.argmax(axis=1)).sum()),
            largest_difference=float(np.abs(restored - trained).max()),
        )


def _probabilities(model: Any, images: LabelledImages) -> Any:
    """Returns what the model gives, `[images, classes]`: under a strategy that of its first replica."""
    infer, parts = tf.function(model), np.array_split(images.features, 10)
    return np.concatenate([tf.nn.softmax(tf.cast(infer(part), tf.float64)) for part in parts])


def _result(probabilities: Any, labels: Any) -> tuple[float, float]:
    """Returns loss and accuracy."""
    losses = -np.log(probabilities[np.arange(len(labels)), labels])
    return float(losses.mean()), float((probabilities.argmax(axis=1) == labels).mean())
