"""Handwritten digits: lesson 7's model, data parallel on eight devices, from several seeds."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib import setup

setup(devices=8)

from benchmarks.histories import run_of  # noqa: E402
from course_lib.data.images import ImageSet  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.specs.plan import data_parallel  # noqa: E402
from course_lib.training.batches import PAD  # noqa: E402
from course_lib.training.optimizers.adam import Adam  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.run import train  # noqa: E402
from lessons.lesson_07_from_scratch.mnist_model import MLP, initial_values  # noqa: E402

BATCH_SIZE = 128
SETTINGS = {
    "plan": "data_parallel(8)",
    "model": "784-700-500-10",
    "batch_size": str(BATCH_SIZE),
    "last_batch": PAD,
    "optimizer": repr(Adam()),
}


def seeded_run(images: ImageSet, epochs: int, seeds: Sequence[int]) -> Record:
    """Returns what each of the seeds gives, every example counted once an epoch."""
    histories = []
    for seed in seeds:
        run = train(
            MLP(initial_values(seed), data_parallel(8)),
            images.train,
            images.test,
            epochs=epochs,
            batch_size=BATCH_SIZE,
            optimizer=Adam(),
            seed=seed,
            last_batch=PAD,
        )
        histories.append(History.of(run))
    return run_of(histories)
