"""Garments: lesson 10's model under a MirroredStrategy, and restored without a strategy."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib import setup

setup(devices=8)

from benchmarks.histories import run_of  # noqa: E402
from course_lib import strategies  # noqa: E402
from course_lib.data.images import ImageSet, LabelledImages  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
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


def seeded_run(images: ImageSet, num_replicas: int, epochs: int, seeds: Sequence[int]) -> Record:
    """Returns what each of the seeds gives, and what their last checkpoints give without a strategy."""
    trained = [_trained(images, num_replicas, epochs, seed) for seed in seeds]
    return run_of([history for history, _of in trained], restored=[restored for _of, restored in trained])


def _trained(images: ImageSet, num_replicas: int, epochs: int, seed: int) -> tuple[History, Record]:
    strategy = strategies.mirrored(num_replicas)
    trainer = _trainer(strategy, seed)
    chosen = Settings(epochs, PER_REPLICA * num_replicas, seed, PAD)
    with tempfile.TemporaryDirectory() as kept:
        folder = CheckpointFolder(kept, keep=1)
        run = TrainingRun(trainer, images.train, images.test, settings=chosen, checkpoints=folder)
        history = History.of(run)
        alone = _trainer(tf.distribute.get_strategy(), seed + 1)  # its values can only be the checkpoint's
        folder.restore_latest(**alone.content())
    history.epochs = [replace(epoch, checkpoint=None) for epoch in history.epochs]
    accuracy = alone.evaluate(images.test)[1]
    restored = compared(accuracy, *(_probabilities(each, images.test) for each in (trainer, alone)))
    print(f"seed {seed}: {accuracy:.4f}; without a strategy: {dict(restored)}", flush=True)
    return history, restored


def _trainer(strategy: Any, seed: int) -> StrategyTrainer:
    with strategy.scope():
        adam = tf.keras.optimizers.Adam(0.001)
    return StrategyTrainer(convolutional(strategy, seed), adam, strategy)


def compared(accuracy: float, trained: Probabilities, restored: Probabilities) -> Record:
    """Returns how a restored model of this accuracy answers, beside the trained one: `[images, classes]`."""
    otherwise = int((restored.argmax(axis=1) != trained.argmax(axis=1)).sum())
    difference = float(np.abs(restored - trained).max())
    return Record(test_accuracy=accuracy, otherwise=otherwise, largest_difference=difference)


def _probabilities(trainer: StrategyTrainer, images: LabelledImages) -> Probabilities:
    """Returns what every replica gives for its part of the images, `[images, classes] global`."""
    strategy = trainer.strategy
    infer = tf.function(lambda rows: strategy.run(trainer.model, (rows,)))
    batches = tf.data.Dataset.from_tensor_slices(images.features).batch(_ROWS)
    parts = [
        strategy.gather(infer(rows), axis=0) for rows in strategy.experimental_distribute_dataset(batches)
    ]
    return tf.nn.softmax(tf.cast(tf.concat(parts, axis=0), tf.float64)).numpy()
