"""Training steps: the course's loop against that of TensorFlow's tutorial, and against one device.

What is compared takes turns in one process, on random data of the shape of the IMDB reviews; medians of the
pairs' ratios are told, since absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import tutorial_loop  # noqa: E402
from benchmarks.rows import Row, compared, table  # noqa: E402
from course_lib.data.examples import Examples  # noqa: E402
from course_lib.models.sentiment import EPSILON, MLP, initial_values  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel  # noqa: E402
from course_lib.training.records import StepRecord  # noqa: E402
from course_lib.training.run import train  # noqa: E402

tf = start_tensorflow()

BATCH_SIZE = 64
SCHEMES: dict[str, Callable[[], Plan]] = {
    "data": data_parallel,
    "model": model_parallel,
    "spatial": spatial_parallel,
}

Turn = Callable[[], float]  # trains some steps, and returns the seconds a step


def measure(repeats: int = 7, num_steps: int = 128, schemes: Sequence[str] = tuple(SCHEMES)) -> list[Row]:
    """Returns the table: each scheme against the tutorial's loop, then data parallel against one device.

    Args:
        repeats: how many pairs are measured for each line.
        num_steps: the number of steps in each measurement.
        schemes: which of `SCHEMES`.
    """
    examples = random_examples()
    lines = {
        f"a step, {scheme} parallel / tutorial's loop": (
            course_loop(SCHEMES[scheme](), examples, num_steps),
            timed(tutorial_loop.training(scheme, examples), num_steps),
        )
        for scheme in schemes
    }
    lines["a step, data parallel / one device, no DTensor"] = (
        course_loop(data_parallel(), examples, num_steps),
        timed(one_device_loop(examples), num_steps),
    )
    rows = []
    for what, (ours, theirs) in lines.items():
        ours(), theirs()  # to compile and warm up
        rows.append(compared(what, [(ours(), theirs()) for _repeat in range(repeats)]))
    return rows


def random_examples(num_examples: int = 25_000, num_features: int = 1200) -> Examples:
    """Returns examples of the shape of the IMDB reviews, with a signal that can be learnt."""
    random = np.random.default_rng(0)
    features = random.standard_normal((num_examples, num_features), np.float32)
    return Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))


def timed(train_steps: Callable[[int], object], num_steps: int) -> Turn:
    """Returns a measurement of a function that trains a number of steps."""

    def turn() -> float:
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):  # the tutorial's progress bar
            train_steps(num_steps)
        return (time.perf_counter() - start) / num_steps

    return turn


def course_loop(plan: Plan, examples: Examples, num_steps: int) -> Turn:
    """Returns a measurement of the course's loop."""
    run = iter(train(MLP(initial_values(), plan), examples, epochs=1_000, batch_size=BATCH_SIZE))

    def train_steps(num_steps: int) -> None:
        done = 0
        while done < num_steps:
            done += isinstance(next(run), StepRecord)

    return timed(train_steps, num_steps)


def one_device_loop(examples: Examples) -> Callable[[int], None]:
    """Returns a function that trains some steps without DTensor."""
    variables = list(MLP(initial_values()).trained.values())

    @tf.function
    def step(inputs: Any, labels: Any) -> Any:
        hidden_weight, hidden_bias, logits_weight, logits_bias = variables
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(inputs @ hidden_weight + hidden_bias)
            normal = tf.nn.batch_normalization(hidden, *tf.nn.moments(hidden, [0]), None, None, EPSILON)
            logits = normal @ logits_weight + logits_bias
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):  # noqa: B905
            variable.assign_sub(1e-2 * gradient)
        return loss

    def train_steps(num_steps: int) -> None:
        for at in range(num_steps):
            rows = slice(at * BATCH_SIZE, (at + 1) * BATCH_SIZE)
            float(step(tf.constant(examples.features[rows]), tf.constant(examples.labels[rows])))

    return train_steps


if __name__ == "__main__":
    print(table(measure()))
