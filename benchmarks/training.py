"""How fast training is: the course's loop, the public tutorial's, one device without DTensor, and JAX.

Every pair is measured in one run, in turns, on random data of the shape of the IMDB reviews. What is
compared are medians; absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks import tutorial_loop  # noqa: E402
from benchmarks.rows import Row, compared, table  # noqa: E402
from benchmarks.worker import worker  # noqa: E402
from course_lib.data.examples import Examples  # noqa: E402
from course_lib.models.sentiment import EPSILON, MLP, initial_values  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel  # noqa: E402
from course_lib.training.records import StepRecord  # noqa: E402
from course_lib.training.run import train  # noqa: E402

tf = start_tensorflow()

JAX_STEPS = Path(__file__).with_name("jax_steps.py")
BATCH_SIZE = 64
SCHEMES: dict[str, Callable[[], Plan]] = {
    "data": data_parallel,
    "model": model_parallel,
    "spatial": spatial_parallel,
}


def random_examples(num_examples: int = 25_000, num_features: int = 1200) -> Examples:
    """Returns examples of the shape of the IMDB reviews, with a signal that can be learnt."""
    random = np.random.default_rng(0)
    features = random.standard_normal((num_examples, num_features), np.float32)
    return Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))


def course_loop(plan: Plan, examples: Examples, num_steps: int) -> Callable[[], float]:
    """Returns a function that trains some steps with the course's loop and returns the seconds a step."""
    run = iter(train(MLP(initial_values(), plan), examples, epochs=1_000, batch_size=BATCH_SIZE))

    def measure_once() -> float:
        start, done = time.perf_counter(), 0
        while done < num_steps:
            done += isinstance(next(run), StepRecord)
        return (time.perf_counter() - start) / num_steps

    return measure_once


def tutorials_loop(scheme: str, examples: Examples, num_steps: int) -> Callable[[], float]:
    """Returns a function that trains some steps with the tutorial's loop and returns the seconds a step."""
    train_steps = tutorial_loop.training(scheme, examples)

    def measure_once() -> float:
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            train_steps(num_steps)
        return (time.perf_counter() - start) / num_steps

    return measure_once


def one_device_step() -> Callable[[Any, Any], Any]:
    """Returns a compiled train step on one device, without DTensor: inputs and labels in, summed loss out."""
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

    compiled: Callable[[Any, Any], Any] = step
    return compiled


def one_device_loop(examples: Examples, num_steps: int) -> Callable[[], float]:
    """Returns a function that trains some steps without DTensor, and returns the seconds a step."""
    step = one_device_step()

    def measure_once() -> float:
        start = time.perf_counter()
        for at in range(num_steps):
            rows = slice(at * BATCH_SIZE, (at + 1) * BATCH_SIZE)
            float(step(tf.constant(examples.features[rows]), tf.constant(examples.labels[rows])))
        return (time.perf_counter() - start) / num_steps

    return measure_once


def compare(
    what: str, ours: Callable[[], float], other: Callable[[], float], repeats: int, goal: str = ""
) -> Row:
    """Returns one line of the table, having measured the two in turns, after one turn to warm up."""
    ours(), other()
    return compared(what, [(ours(), other()) for _repeat in range(repeats)], goal)


def measure(repeats: int = 7, num_steps: int = 128, schemes: tuple[str, ...] = tuple(SCHEMES)) -> list[Row]:
    """Returns the table: each scheme against the tutorial's loop, then against one device and JAX.

    Args:
        repeats: how many pairs are measured for each line.
        num_steps: the number of steps in each measurement.
        schemes: which of `SCHEMES`.
    """
    examples = random_examples()
    rows = []
    for scheme in schemes:
        ours = course_loop(SCHEMES[scheme](), examples, num_steps)
        theirs = tutorials_loop(scheme, examples, num_steps)
        rows.append(compare(f"a step, {scheme} parallel / tutorial's loop", ours, theirs, repeats))
    alone = course_loop(data_parallel(), examples, num_steps), one_device_loop(examples, num_steps)
    rows.append(compare("a step, data parallel / one device, no DTensor", *alone, repeats))
    return rows + compare_with_jax(examples, repeats, num_steps)


def compare_with_jax(examples: Examples, repeats: int, num_steps: int) -> list[Row]:
    """Returns a row each for the meshes 8 and 4x2, where there is JAX; it runs in a process of its own."""
    python = jax_python()
    if python is None:
        return []
    rows = []
    with worker([python, str(JAX_STEPS)]) as ask:
        for scheme in ("data", "model"):
            ours = course_loop(SCHEMES[scheme](), examples, num_steps)
            jax = partial(ask, f"{scheme} {num_steps}")
            rows.append(compare(f"a step, {scheme} parallel / JAX, 8 host devices", ours, jax, repeats))
    return rows


def jax_python() -> str | None:
    """Returns a Python that has JAX: that of `make jax`, or this one; None where there is neither."""
    own = JAX_STEPS.parents[1] / "build" / "jax-venv" / "bin" / "python"
    if own.exists():
        return str(own)
    return sys.executable if find_spec("jax") else None


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    options = parser.parse_args()
    print(table(measure(options.repeats, schemes=tuple(options.schemes))))


if __name__ == "__main__":
    main()
