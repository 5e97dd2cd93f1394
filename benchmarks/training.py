"""Training steps: the course's loop against that of TensorFlow's tutorial and that of `a_run`.

What is compared takes turns in one process, on random data of the shape of the IMDB reviews; the ratio of the
medians is told, since absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import plain_loop, tutorial_loop  # noqa: E402
from course_lib.data.examples import Examples  # noqa: E402
from course_lib.models.sentiment import MLP, initial_values  # noqa: E402
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel  # noqa: E402
from course_lib.training.records import StepRecord  # noqa: E402
from course_lib.training.run import train  # noqa: E402

BATCH_SIZE = 64
REPEATS, NUM_STEPS = 7, 128  # of each measurement, and in each
SCHEMES: dict[str, Callable[[], Plan]] = {
    "data": data_parallel,
    "model": model_parallel,
    "spatial": spatial_parallel,
}

Turn = Callable[[], float]  # trains some steps, and returns the seconds a step


def measure() -> Iterator[tuple[str, float, float]]:
    """Yields what is compared, the seconds of the course's step and those of the other: medians.

    Each scheme is measured against the tutorial's loop, and data parallel against that of `a_run` too.
    """
    examples = random_examples()
    others: list[tuple[str, str, Callable[[int], object]]] = [
        *((scheme, "tutorial's loop", tutorial_loop.training(scheme, examples)) for scheme in SCHEMES),
        ("data", "one step a call (`a_run`)", plain_loop.training(examples)),
    ]
    for scheme, name, train_steps in others:
        ours, theirs = course_loop(SCHEMES[scheme](), examples), timed(train_steps)
        ours(), theirs()  # to compile and warm up
        pairs = [(ours(), theirs()) for _repeat in range(REPEATS)]
        course, other = map(statistics.median, zip(*pairs, strict=True))
        yield f"a step, {scheme} parallel / {name}", course, other


def random_examples() -> Examples:
    """Returns examples of the shape of the IMDB reviews, with a signal that can be learnt."""
    features = np.random.default_rng(0).standard_normal((25_000, 1200), np.float32)
    return Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))


def timed(train_steps: Callable[[int], object]) -> Turn:
    """Returns a measurement of a function that trains a number of steps."""

    def turn() -> float:
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):  # the tutorial's progress bar
            train_steps(NUM_STEPS)
        return (time.perf_counter() - start) / NUM_STEPS

    return turn


def course_loop(plan: Plan, examples: Examples) -> Turn:
    """Returns a measurement of the course's loop."""
    run = iter(train(MLP(initial_values(), plan), examples, epochs=1_000, batch_size=BATCH_SIZE))

    def train_steps(num_steps: int) -> None:
        done = 0
        while done < num_steps:
            done += isinstance(next(run), StepRecord)

    return timed(train_steps)
