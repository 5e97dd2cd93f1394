"""One device and the three schemes on one set of reviews: from equal initial values, and from a checkpoint.

Each run has the same batches in the same order, and is compared with the run on one device step by step.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks.histories import run_of  # noqa: E402
from course_lib.data.imdb import VectorizedReviews  # noqa: E402
from course_lib.measured.files import Record  # noqa: E402
from course_lib.models.sentiment import MLP, initial_values  # noqa: E402
from course_lib.models.variables import Values  # noqa: E402
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.run import train  # noqa: E402

ONE_DEVICE = "one"  # the run that the others are compared with
PLANS: dict[str, Plan | None] = {
    ONE_DEVICE: None,
    "data": data_parallel(),
    "model": model_parallel(),
    "spatial": spatial_parallel(),
}
EPOCHS, CONTINUED_EPOCHS = 3, 2  # in all
FIRST_STEPS = 20

Took = tuple[History, Values]  # the records of a run, and the model's values at its end
Run = Callable[[Plan | None, int | None], Took]  # at most so many records; all if None


def from_equal_values(reviews: VectorizedReviews, epochs: int = EPOCHS) -> dict[str, Record]:
    """Returns what equal initial values give on one device and in each scheme."""
    return _compared(lambda plan, most: _taken(plan, reviews, epochs, most))


def from_a_checkpoint(reviews: VectorizedReviews, epochs: int = CONTINUED_EPOCHS) -> dict[str, Record]:
    """Returns what a checkpoint of one data-parallel epoch gives, continued on one device and in each scheme.

    Raises:
        RuntimeError: a scheme restored other weights than were saved.
    """
    with tempfile.TemporaryDirectory() as kept:
        _history, saved = _taken(PLANS["data"], reviews, 1, None, Path(kept))

        def run(plan: Plan | None, most: int | None) -> Took:
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(kept, folder, dirs_exist_ok=True)
                return _taken(plan, reviews, epochs, most, Path(folder))

        for scheme, plan in PLANS.items():
            _history, restored = run(plan, 0)
            if any(restored[name].tobytes() != value.tobytes() for name, value in saved.items()):
                raise RuntimeError(f"{scheme}: the restored weights are not those of the checkpoint.")
        return _compared(run)


def _taken(
    plan: Plan | None,
    reviews: VectorizedReviews,
    epochs: int,
    most: int | None,
    folder: Path | None = None,
) -> Took:
    model = MLP(initial_values(), plan)
    history = History()
    with train(model, reviews.train, reviews.test, epochs=epochs, checkpoints=folder) as run:
        for record in itertools.islice(run, most):
            history.add(record)
    return history, model.values()


def _compared(run: Run) -> dict[str, Record]:
    first = {scheme: run(plan, FIRST_STEPS) for scheme, plan in PLANS.items()}
    whole = {scheme: run(plan, None) for scheme, plan in PLANS.items()}
    runs = {scheme: run_of([history]) for scheme, (history, _values) in whole.items()}
    for scheme in runs.keys() - {ONE_DEVICE}:
        runs[scheme] |= {"first": _difference(first, scheme), "whole": _difference(whole, scheme)}
    return runs


def _difference(runs: Mapping[str, Took], scheme: str) -> Record:
    (history, values), (reference, of_reference) = runs[scheme], runs[ONE_DEVICE]
    pairs = list(zip(history.steps, reference.steps, strict=True))
    largest = {
        "loss": max(abs(ours.loss - theirs.loss) for ours, theirs in pairs),
        "accuracy": max(abs(ours.accuracy - theirs.accuracy) for ours, theirs in pairs),
        "weights": max(float(np.abs(values[name] - of_reference[name]).max()) for name in values),
    }
    return Record({name: float(f"{value:.3g}") for name, value in largest.items()})
