"""Trainings as their files hold them: with what they were made, and what the lessons' loops yielded."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_lib.data.sources import BUILT_IN
from course_lib.measured.files import Record
from course_lib.runtime import start_tensorflow

SEEDS = (0, 1, 2)  # a seed draws the initial values and the order of the examples
DIGITS = 4

# Such as `{"step": 1, "epoch": 1, "loss": 0.7, "accuracy": 0.5}`. Behind the last step of an epoch comes one
# more, which has "test_loss" and "test_accuracy" too.
Records = Sequence[dict[str, Any]]


def circumstances(name: str, source: str, examples: Any, **details: str) -> dict[str, str]:
    """Returns with what the figures of trainings were obtained.

    Args:
        name: of the real data.
        source: where the examples come from.
        examples: the set itself, with `train` and `test`.
        details: what else there is to say.
    """
    return {
        "command": "make results",
        "data": f"{source if source == BUILT_IN else name}, {len(examples.train)} + {len(examples.test)}",
        "tensorflow": start_tensorflow().__version__,
        "python": platform.python_version(),
        "devices": "8",
        **details,
    }


def seeds_told() -> str:
    """Returns the seeds as their files name them."""
    return ", ".join(map(str, SEEDS))


def run_of(trainings: Sequence[Records], batch_size: int, last_batch_size: int = 0, **further: Any) -> Record:
    """Returns one setting: the steps of its first seed, and the whole epochs of each.

    Args:
        trainings: the records of each seed.
        batch_size: the number of examples of a step.
        last_batch_size: that of the last step of an epoch, where it is another.
        further: what else there is to say of it.
    """
    steps = steps_of(trainings[0])
    return Record(
        steps_per_epoch=sum(record["epoch"] == steps[0]["epoch"] for record in steps),
        losses=[round(record["loss"], DIGITS) for record in steps],
        accuracies=[round(record["accuracy"], DIGITS) for record in steps],
        epochs=[[*_epochs(training, batch_size, last_batch_size or batch_size)] for training in trainings],
        **further,
    )


def steps_of(training: Records) -> Records:
    """Returns the records of a training's steps alone."""
    return [record for record in training if "test_loss" not in record]


def _epochs(training: Records, batch_size: int, last_batch_size: int) -> Iterator[Record]:
    """Yields each epoch with the means of its training examples."""
    for end in training:
        if "test_loss" in end:
            steps = [record for record in steps_of(training) if record["epoch"] == end["epoch"]]
            sizes = [batch_size] * (len(steps) - 1) + [last_batch_size]
            means = {
                f"train_{name}": float(np.average([record[name] for record in steps], weights=sizes))
                for name in ("loss", "accuracy")
            }
            tested = {name: end[name] for name in ("test_loss", "test_accuracy")}
            yield Record(epoch=end["epoch"], step=end["step"], **means, **tested)
