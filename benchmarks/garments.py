"""Garments: what the plain program `custom_training` defines, trained on replicas and restored."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.programs import program
from benchmarks.records import SEEDS, circumstances, run_of, seeds_told
from course_lib.data.images import Images, LabelledImages, load_fashion
from course_lib.measured.files import Record
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

PER_REPLICA = 64


def measure(source: str, num_train: int, num_test: int, num_replicas: int, epochs: int) -> dict[str, Any]:
    """Returns what each of the seeds gives, and what their last checkpoints give without a strategy."""
    images, size = load_fashion(source, num_train=num_train, num_test=num_test), PER_REPLICA * num_replicas
    details = {
        "keras": tf.keras.__version__,
        "strategy": f"MirroredStrategy, {num_replicas} replicas",
        "model": "Conv2D(32, 3), Conv2D(64, 3), Dense(64), Dense(10)",
        "batch_size": f"{PER_REPLICA} × {num_replicas}",
        "last_batch": "smaller",
        "optimizer": "tf.keras.optimizers.Adam()",
    }
    how = circumstances("fashion_mnist 3.0.1", source, images, **details, seeds=seeds_told())
    runs = [_Run(images, num_replicas, seed) for seed in SEEDS]
    trainings = [[*run.records(epochs)] for run in runs]
    restored = [run.restored() for run in runs]
    return {"how": how, "runs": {"adam": run_of(trainings, size, num_train % size, restored=restored)}}


class _Run:
    def __init__(self, images: Images, num_replicas: int, seed: int) -> None:
        self.images, self.size, self.seed = images, PER_REPLICA * num_replicas, seed
        self.program = program("custom_training")
        devices = [f"CPU:{replica}" for replica in range(num_replicas)]
        self.strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
        self.model, self.adam = self._build(self.strategy, seed)

    def _build(self, strategy: Any, seed: int) -> tuple[Any, Any]:
        def seeded() -> Any:
            tf.keras.utils.set_random_seed(seed)
            return self.program.convolutional()

        return self.program.build(strategy, seeded)

    def records(self, epochs: int) -> Iterator[dict[str, Any]]:
        """Yields the records of the program's loop, and one of each epoch."""
        examples = self.images.train
        rows = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
        batches = rows.shuffle(len(examples), seed=self.seed).batch(self.size)  # anew in each epoch
        distributed = self.strategy.experimental_distribute_dataset(batches.repeat())
        of_run = self.strategy, self.model, self.adam, self.program.replica_step, distributed, len(batches)
        with TemporaryDirectory() as folder:
            for record in self.program.train(*of_run, epochs, folder):
                yield record
                if record["step"] % len(batches) == 0:
                    probabilities = _probabilities(self.model, self.images.test)
                    loss, accuracy = _result(probabilities, self.images.test.labels)
                    yield {**record, "test_loss": loss, "test_accuracy": accuracy}

    def restored(self) -> Record:
        """Returns how the trained model, restored from a checkpoint without a strategy, answers beside it."""
        alone, its_adam = self._build(tf.distribute.get_strategy(), self.seed + 1)  # other values
        with TemporaryDirectory() as folder:
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
