"""Garments: lesson 10's model under a MirroredStrategy, and restored without a strategy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib import setup

setup(devices=8)

from course_lib import strategies  # noqa: E402
from course_lib.data.images import ImageSet, LabelledImages  # noqa: E402
from course_lib.measured.results import Restored, SeededRun  # noqa: E402
from course_lib.models.fashion import convolutional  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.training.batches import PAD  # noqa: E402
from course_lib.training.checkpoints import CheckpointFolder  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.run import TrainingRun  # noqa: E402
from course_lib.training.settings import Settings  # noqa: E402
from course_lib.training.strategy_trainer import StrategyTrainer  # noqa: E402

tf = start_tensorflow()

PER_REPLICA = 64
_ROWS = 1_000  # that are asked for at a time

Probabilities = npt.NDArray[np.float64]


def settings(num_replicas: int) -> dict[str, str]:
    """Returns how the trainings are set, as the lesson has it."""
    return {
        "strategy": f"strategies.mirrored({num_replicas})",
        "model": "Conv2D(32, 3), Conv2D(64, 3), Dense(64), Dense(10)",
        "batch_size": f"{PER_REPLICA} × {num_replicas}",
        "last_batch": PAD,
        "optimizer": "tf.keras.optimizers.Adam(learning_rate=0.001)",
    }


def seeded_run(images: ImageSet, num_replicas: int, epochs: int, seed: int) -> SeededRun:
    """Returns what a seed gives, and what its last checkpoint gives without a strategy."""
    strategy = strategies.mirrored(num_replicas)
    trainer = _trainer(strategy, seed)
    chosen = Settings(epochs, PER_REPLICA * num_replicas, seed, PAD)
    with tempfile.TemporaryDirectory() as kept:
        folder = CheckpointFolder(kept, keep=1)
        run = TrainingRun(trainer, images.train, images.test, settings=chosen, checkpoints=folder)
        history = History.of(_told(run, seed))
        alone = _trainer(tf.distribute.get_strategy(), seed + 1)  # its values can only be the checkpoint's
        folder.restore_latest(**alone.content())
    history.epochs = [replace(epoch, checkpoint=None) for epoch in history.epochs]
    accuracy = alone.evaluate(images.test)[1]
    restored = _compared(accuracy, *(_probabilities(each, images.test) for each in (trainer, alone)))
    print(f"seed {seed}, without a strategy:", restored, flush=True)
    return SeededRun(history, (tuple(history.epochs),), (restored,))


def _trainer(strategy: Any, seed: int) -> StrategyTrainer:
    with strategy.scope():
        adam = tf.keras.optimizers.Adam(0.001)
    return StrategyTrainer(convolutional(strategy, seed), adam, strategy)


def _told(run: TrainingRun, seed: int) -> Iterator[Any]:
    """Yields the records of a run, and says how it goes: it takes minutes."""
    for record in run:
        if hasattr(record, "test_accuracy"):
            print(f"seed {seed}, epoch {record.epoch}: {record.test_accuracy:.4f}", flush=True)
        yield record


def _compared(accuracy: float, trained: Probabilities, restored: Probabilities) -> Restored:
    otherwise = int((restored.argmax(axis=1) != trained.argmax(axis=1)).sum())
    return Restored(accuracy, otherwise, float(np.abs(restored - trained).max()))


def _probabilities(trainer: StrategyTrainer, images: LabelledImages) -> Probabilities:
    """Returns what every replica gives for its part of the images, `[images, classes] global`."""
    strategy = trainer.strategy
    infer = tf.function(lambda rows: strategy.run(trainer.model, (rows,)))
    batches = tf.data.Dataset.from_tensor_slices(images.features).batch(_ROWS)
    parts = [
        strategy.gather(infer(rows), axis=0) for rows in strategy.experimental_distribute_dataset(batches)
    ]
    return tf.nn.softmax(tf.cast(tf.concat(parts, axis=0), tf.float64)).numpy()
