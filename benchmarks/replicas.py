"""Training under a MirroredStrategy: ways to iterate, replicas against one device, and the tutorial's loop.

All on random images of the shape of Fashion-MNIST. The replicas are measured as the batch sizes are in
`sweep`, with one thread a device and with TensorFlow's own numbers of threads, each setting in a process of
its own: with one thread a device, one device uses about one core, and several use two. Their model is lesson
10's, and their batches lie on the devices already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import strategy_tutorial, sweep  # noqa: E402
from benchmarks.rows import Row, compared, table  # noqa: E402
from benchmarks.worker import serve, worker  # noqa: E402
from course_lib import strategies  # noqa: E402
from course_lib.data.examples import Examples  # noqa: E402
from course_lib.models.fashion import CLASSES, IMAGE, convolutional  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.training.iteration_times import timed_ways  # noqa: E402
from course_lib.training.records import StepRecord  # noqa: E402
from course_lib.training.run import TrainingRun  # noqa: E402
from course_lib.training.settings import Settings  # noqa: E402
from course_lib.training.strategy_trainer import StrategyTrainer  # noqa: E402

tf = start_tensorflow()

ITERATED, SPLIT = (64, 512, 4096), (64, 256, 1024)  # batch sizes
COUNTS = (2, 4, 8)
THREADS = ("one thread a device", "TensorFlow's threads")
STEPS, BATCH_SIZE = 64, 128  # of an epoch against the tutorial's loop: two calls of the course's
_IMAGES_IN_A_TURN = 1024
_LEAST_STEPS_IN_A_TURN = 2


def small(strategy: Any) -> Any:
    """Returns a model whose steps are so short that what Python does counts."""
    layers, drawn = tf.keras.layers, tf.keras.initializers.GlorotUniform
    with strategy.scope():
        dense = (
            layers.Dense(32, "relu", kernel_initializer=drawn(0)),
            layers.Dense(CLASSES, kernel_initializer=drawn(1)),
        )
        return tf.keras.Sequential([tf.keras.Input(IMAGE), layers.Flatten(), *dense])


MODELS: Mapping[str, Callable[[Any], Any]] = {"convolutional model": convolutional, "small model": small}


def measure(
    repeats: int = 7,
    iterated: Sequence[int] = ITERATED,
    split: Sequence[int] = SPLIT,
    counts: Sequence[int] = COUNTS,
    models: Sequence[str] = tuple(MODELS),
) -> list[Row]:
    """Returns the table.

    Args:
        repeats: how many times each is measured, in turns with what it is compared with.
        iterated: the batch sizes of the three ways to iterate.
        split: the batch sizes that replicas share; none leaves their processes out.
        counts: numbers of replicas.
        models: which of `MODELS` train against the tutorial's loop.
    """
    rows = [row for size in iterated for row in _ways(size, repeats)]
    for threads in THREADS if split else ():
        rows += _replicas(threads, split, counts, repeats)
    return rows + [_against_the_tutorial(model, repeats) for model in models]


def _ways(batch_size: int, repeats: int) -> list[Row]:
    """Returns the ways that call TensorFlow less often, beside the loop in Python."""
    turns = timed_ways(strategies.mirrored(2), batch_size)
    for turn in turns:
        turn()
    rounds = [tuple(turn() for turn in turns) for _repeat in range(repeats)]
    return [
        compared(
            f"2 replicas, batch {batch_size:,}: {way} / a for loop", [(each[at], each[0]) for each in rounds]
        )
        for at, way in enumerate(("10 steps in a call", "whole epoch in a call"), start=1)
    ]


def _replicas(threads: str, sizes: Sequence[int], counts: Sequence[int], repeats: int) -> list[Row]:
    rows = []
    with worker([sys.executable, "-m", "benchmarks.replicas", "--serve"], sweep.SETTINGS[threads]) as ask:
        for size in sizes:
            rounds = [{count: ask(f"{count} {size}") for count in (1, *counts)} for _repeat in range(repeats)]
            rows += [
                compared(
                    f"{threads}: batch {size:,}, {count} replicas / one device",
                    [(each[count], each[1]) for each in rounds],
                )
                for count in counts
            ]
    return rows


def make(what: str) -> Callable[[], float]:
    """Returns a function that trains some steps and returns the seconds a step.

    Args:
        what: the number of replicas and the size of the global batch, such as "2 64".
    """
    count, size = map(int, what.split())
    strategy = strategies.mirrored(count) if count > 1 else tf.distribute.get_strategy()
    trainer, images = _trainer(strategy, convolutional), random_images(size)
    batches = trainer.send(images.features[np.newaxis], images.labels[np.newaxis], None)
    num_steps = max(_LEAST_STEPS_IN_A_TURN, _IMAGES_IN_A_TURN // size)

    def turn() -> float:
        start = time.perf_counter()
        for _step in range(num_steps):
            wait = trainer.steps(batches, 1)
        wait()  # each step needs the values of the one before: the last one waits for all
        return (time.perf_counter() - start) / num_steps

    return turn


def _against_the_tutorial(model: str, repeats: int) -> Row:
    """Returns an epoch of the course's loop beside one of the tutorial's, each with a model of its own."""
    two, images = strategies.mirrored(2), random_images(STEPS * BATCH_SIZE)
    settings = Settings(repeats + 1, BATCH_SIZE)
    records = iter(TrainingRun(_trainer(two, MODELS[model]), images, settings=settings))
    theirs = strategy_tutorial.training(two, MODELS[model](two), images, BATCH_SIZE)

    def ours() -> None:
        while isinstance(next(records), StepRecord):  # behind an epoch's steps comes its own record
            pass

    turns = _timed(ours), _timed(theirs)
    pairs = [(turns[0](), turns[1]()) for _repeat in range(1 + repeats)]
    return compared(f"{model}, 2 replicas, batch {BATCH_SIZE} / the tutorial's loop", pairs[1:])


def random_images(count: int) -> Examples:
    """Returns noise with labels."""
    random = np.random.default_rng(0)
    return Examples(random.random((count, *IMAGE), np.float32), random.integers(0, CLASSES, count))


def _trainer(strategy: Any, model: Callable[[Any], Any]) -> StrategyTrainer:
    with strategy.scope():
        adam = tf.keras.optimizers.Adam()
    return StrategyTrainer(model(strategy), adam, strategy)


def _timed(epoch: Callable[[], object]) -> Callable[[], float]:
    def seconds() -> float:
        start = time.perf_counter()
        epoch()
        return (time.perf_counter() - start) / STEPS

    return seconds


def main() -> None:
    """Prints the table, or measures for the process that asks."""
    if "--serve" in sys.argv:
        serve(make)
    else:
        print(table(measure()))


if __name__ == "__main__":
    main()
